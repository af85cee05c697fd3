"""Fencing tokens: each acquisition of a name has a larger one than all before."""

from __future__ import annotations

import pytest
from django.db import transaction

from alkstore_django import locks
from alkstore_django.locks import lock
from alkstore_django.models import Lock, LockToken
from tests import factories

pytestmark = pytest.mark.django_db(databases=["default", "other"])


def token(name: str = "l", **options: str) -> int:
    with lock(name, **options) as held:  # type: ignore[arg-type]
        return held.token


def test_they_grow() -> None:
    tokens = [token() for _ in range(10)]
    assert tokens == sorted(set(tokens)) and tokens[0] > 0 and tokens[-1] < 2**53
    assert LockToken.objects.get().token == tokens[-1]


def test_by_whatever_way_a_lock_ended() -> None:
    found = [token()]
    found.append(lock("l").acquire().token)
    assert locks.force_release("l")
    found.append(lock("l").acquire().token)
    Lock.objects.update(expires_at=factories.at(-1))
    found.append(lock("l").acquire().token)
    Lock.objects.update(expires_at=factories.at(-10_000))
    assert locks.sweep_expired("default") == 1
    found.append(lock("l", owner="me").acquire().token)
    Lock.objects.update(expires_at=factories.at(-1))
    found.append(lock("l", owner="me").acquire().token)  # its own, and still another acquisition
    Lock.objects.update(owner="another program")
    Lock.objects.all().delete()
    found.append(token())
    assert found == sorted(set(found))


def test_extending_and_renewing_keep_it() -> None:
    held = lock("l", owner="me").acquire()
    assert held.renew()
    assert lock("l", owner="me").acquire().token == held.token == LockToken.objects.get().token


def test_a_refusal_gives_none() -> None:
    held = lock("l").acquire()
    with pytest.raises(locks.LockHeld):
        lock("l").acquire()
    assert LockToken.objects.get().token == held.token


def test_a_rollback_takes_it_back_and_it_does_not_come_again() -> None:
    with transaction.atomic():
        undone = lock("l").acquire()
        transaction.set_rollback(True)
    assert not LockToken.objects.exists() and not Lock.objects.exists()
    assert token() > undone.token


def test_rollbacks_in_one_moment() -> None:
    """Quicker than the clock of SQLite, which counts milliseconds."""
    tokens = []
    for _ in range(50):
        with transaction.atomic():
            tokens.append(lock("l").acquire().token)
            transaction.set_rollback(True)
    assert tokens == sorted({*tokens}) and len(tokens) == 50


def test_a_clock_that_was_ahead() -> None:
    ahead = 2**52
    LockToken.objects.create(name="l", token=ahead)
    assert [token(), token()] == [ahead + 1, ahead + 2]


def test_each_name_and_database_has_its_own() -> None:
    LockToken.objects.create(name="l", token=2**52)
    assert token("m") < 2**52 and token("L") < 2**52 and token("l", using="other") < 2**52
