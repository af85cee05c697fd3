"""Named locks, in honker's table: at the very second of its end a lock is free."""

from __future__ import annotations

import pytest

from alkstore_django.models import Lock, LockManager
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def locks() -> LockManager:
    return Lock.objects.db_manager("default")


def end_in(name: str, seconds: int) -> None:
    assert Lock.objects.filter(pk=name).update(expires_at=factories.at(seconds)) == 1


def left(locks: LockManager, name: str = "l") -> int:
    holder = locks.holder(name)
    assert holder is not None
    return holder[2]


def test_one_has_it(locks: LockManager) -> None:
    assert locks.holder("l") is None
    assert locks.acquire("l", "a", 60)
    assert not locks.acquire("l", "b", 60) and locks.acquire("L", "b", 60)
    holder = locks.holder("l")
    assert holder is not None and holder[0] == "a" and 58 <= holder[2] <= 60
    assert not locks.renew("l", "b", 60) and not locks.release("l", "b")
    assert locks.release("l", "a") and not locks.release("l", "a")
    assert locks.acquire("l", "b", 60)


def test_to_acquire_ones_own_is_to_extend_it(locks: LockManager) -> None:
    assert locks.acquire("l", "a", 10) and locks.acquire("l", "a", 100) and left(locks) > 90
    assert locks.renew("l", "a", 1000) and left(locks) > 900


def test_at_its_end_it_is_free(locks: LockManager) -> None:
    def scenario() -> None:
        Lock.objects.all().delete()
        assert locks.acquire("l", "a", 60)
        end_in("l", 1)
        assert not locks.acquire("l", "b", 60) and locks.renew("l", "a", 60)
        end_in("l", 0)
        assert left(locks) == 0
        assert not locks.renew("l", "a", 60)
        assert locks.acquire("l", "b", 60) and not locks.renew("l", "a", 60)

    factories.within_a_second(scenario)


def test_what_has_ended_can_be_taken_again_by_its_owner(locks: LockManager) -> None:
    assert locks.acquire("l", "a", 60)
    end_in("l", -100)
    assert not locks.renew("l", "a", 60)
    assert locks.acquire("l", "a", 60) and left(locks) > 50
