"""``renew=True``: a thread that holds the lock for as long as the process lives, and says when it cannot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connections

from alkstore_django import locks
from alkstore_django.locks import HeldLock, LockHeld, lock
from alkstore_django.models import Lock, LockManager
from alkstore_django.runtime import lock_keeper
from tests import factories
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def keepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("alkstore-lock-")]


@pytest.fixture(autouse=True)
def no_keeper_stays() -> Any:
    yield
    wait_until(lambda: not keepers())


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A keeper renews again and again, without regard to how much time there is."""
    monkeypatch.setattr(lock_keeper.Keeper, "_pause", lambda keeper: 0.05)


def is_renewed(held: HeldLock) -> Callable[[], bool]:
    before = held.expires_at
    return lambda: held.expires_at > before


def test_it_holds_beyond_its_time() -> None:
    with lock("l", ttl=5, renew=True) as held:
        first = held.expires_at
        wait_until(lambda: (held.expires_at - first).total_seconds() > 5)
        assert not held.lost
        with pytest.raises(LockHeld):
            lock("l").acquire()
        assert len(keepers()) == 1 and keepers()[0].daemon
    assert not keepers() and not held.lost and locks.holder("l") is None


def test_each_has_a_keeper_of_its_own_and_none_if_it_is_not_asked_for() -> None:
    with lock("a", renew=True), lock("b", renew=True), lock("c"):
        assert sorted(thread.name for thread in keepers()) == ["alkstore-lock-a", "alkstore-lock-b"]


def test_it_notices_that_the_lock_was_taken_away(often: None, caplog: Any) -> None:
    held = lock("l", renew=True).acquire()
    assert locks.force_release("l")
    wait_until(lambda: held.lost)
    wait_until(lambda: not keepers())
    assert f"Lock 'l' of '{held.owner}' is lost." in caplog.text
    assert not held.release()


def test_it_goes_on_with_the_time_of_a_renewal_by_hand(often: None) -> None:
    with lock("l", renew=True) as held:
        assert held.renew(1000)
        wait_until(is_renewed(held))
        assert held.ttl == 1000 and held.seconds_left > 900


def test_it_tries_again_while_it_has_time(often: None, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """The database is away for a moment."""
    caplog.set_level("INFO", "alkstore_django.locks")
    extend, failures = LockManager.extend, iter(range(2))

    def sometimes(self: Any, *args: Any) -> Any:
        for _ in failures:
            raise OperationalError("away")
        return extend(self, *args)

    monkeypatch.setattr(LockManager, "extend", sometimes)
    with lock("l", renew=True) as held:
        wait_until(is_renewed(held))
        assert not held.lost
    assert caplog.text.count("Lock 'l' could not be renewed: away") == 2


def test_it_gives_up_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def never(self: Any, *args: Any) -> Any:
        raise OperationalError("away")

    monkeypatch.setattr(LockManager, "extend", never)
    held = lock("l", ttl=2, renew=True).acquire()
    wait_until(lambda: not keepers())
    assert held.lost and f"Lock 'l' of '{held.owner}' is lost." in caplog.text
    assert not held.release() and locks.holder("l") is None


def test_its_connection_is_closed(often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    extend = LockManager.extend

    def noted(self: Any, *args: Any) -> Any:
        found = extend(self, *args)
        if threading.current_thread() is not threading.main_thread():
            opened.append(connections["default"])
        return found

    monkeypatch.setattr(LockManager, "extend", noted)
    with lock("l", renew=True) as held:
        wait_until(is_renewed(held))
        assert opened[0].connection is not None and opened[0] is not connections["default"]
    assert opened[0].connection is None


def test_what_is_given_back_soon_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LockManager, "extend", None)
    for _ in range(20):
        with lock("l", renew=True):
            pass
    assert not keepers()


def test_async(often: None) -> None:
    async def scenario() -> None:
        async with lock("l", renew=True) as held:
            first = held.expires_at
            for _ in range(1000):
                if held.expires_at > first:
                    break
                await asyncio.sleep(0.02)
            assert held.expires_at > first
        assert held.is_released and not held.lost

    async_to_sync(scenario)()


def test_an_owner_that_takes_it_twice(often: None) -> None:
    """The end of one is the end of the other, which is told by its keeper."""
    first = lock("l", owner="me", renew=True).acquire()
    second = lock("l", owner="me", renew=True).acquire()
    assert first.token == second.token and second.release()
    wait_until(lambda: first.lost)
    assert not Lock.objects.filter(expires_at__gt=factories.now()).exists()


def test_pauses_are_a_third_of_the_time_that_is_left() -> None:
    held = lock("l", ttl=300).acquire()
    keeper = lock_keeper.Keeper(held)
    assert 80 < keeper._pause() <= 100
    keeper._has_failed = True
    assert keeper._pause() == lock_keeper.AGAIN
