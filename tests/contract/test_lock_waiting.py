"""``wait=``: for a lock that is given back, that ends, or that stays; in threads, and in coroutines."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from alkstore_django import locks
from alkstore_django.locks import HeldLock, LockHeld, lock
from alkstore_django.models import Lock
from alkstore_django.runtime import lock_waiting
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

Acquire = Callable[..., HeldLock]


def acquire(**options: Any) -> HeldLock:
    return lock("l", **options).acquire()


def aacquire(**options: Any) -> HeldLock:
    return async_to_sync(lock("l", **options).aacquire)()


both = pytest.mark.parametrize("take", [acquire, aacquire])


@contextmanager
def after_a_look(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> Iterator[None]:
    """Do something, in another thread, when somebody has begun to wait."""
    waits = threading.Event()
    pauses = lock_waiting._pauses

    def told(seconds: float) -> Iterator[float]:
        for pause in pauses(seconds):
            waits.set()
            yield pause

    def act() -> None:
        try:
            assert waits.wait(30)
            action()
        finally:
            connections.close_all()

    monkeypatch.setattr(lock_waiting, "_pauses", told)
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join(30)


@both
def test_what_is_free_is_taken_at_once(take: Acquire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_waiting, "_pauses", lambda seconds: iter(()))
    assert take(wait=30).release() and take(wait=timedelta(seconds=30)).release()


@both
def test_what_is_given_back(take: Acquire, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lock("l", ttl=1000).acquire()
    with after_a_look(monkeypatch, first.release):
        second = take(wait=30)
    assert second.token > first.token and second.release()


@both
def test_what_ends(take: Acquire) -> None:
    Lock.objects.create(name="l", owner="another", expires_at=factories.at(2))
    end = Lock.objects.get().expires_at
    held = take(wait=30)
    assert factories.now() >= end and held.release()


@both
def test_in_vain(take: Acquire) -> None:
    with lock("l") as held:
        started = time.monotonic()
        with pytest.raises(LockHeld, match=f"held by '{held.owner}' until"):
            take(wait=0.3)
        assert time.monotonic() - started >= 0.3


@both
def test_without_it_nobody_waits(take: Acquire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_waiting, "refuse_in_transaction", None)
    with lock("l"):
        for wait in (None, 0, timedelta(0)):
            with pytest.raises(LockHeld):
                take(wait=wait)


def test_pauses_grow_and_end_in_time() -> None:
    found = list(itertools.islice(lock_waiting._pauses(1000), 50))
    assert found[0] < 0.03 and found[-1] >= 0.35 and all(0 < pause <= 0.65 for pause in found)
    assert len(set(found)) > 40, "all that wait come together"
    assert list(lock_waiting._pauses(0)) == []


def test_who_waits_only_looks_while_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite each try that writes would take the lock of the file."""
    monkeypatch.setattr(lock_waiting, "_pauses", lambda seconds: iter([0.01] * 5))
    with lock("l"), CaptureQueriesContext(connection) as captured, pytest.raises(LockHeld):
        lock("l", wait=1).acquire()
    queries = [query["sql"] for query in captured.captured_queries]
    looks = [sql for sql in queries if sql.startswith("SELECT") and "owner" in sql]
    assert len(looks) > 3 and len([sql for sql in queries if "UPDATE _honker_locks" in sql]) == 1


# -- async ----------------------------------------------------------------------------------------


def test_async_with_and_an_async_function() -> None:
    @lock("l", ttl=30)
    async def work(number: int) -> int:
        found = await locks.aholder("l")
        assert found is not None
        return number

    async def scenario() -> None:
        async with lock("l") as held:
            assert await held.arenew(100) and not held.lost
            with pytest.raises(LockHeld):
                await work(1)
        assert held.is_released and asyncio.iscoroutinefunction(work)
        assert [await work(1), await work(2)] == [1, 2]
        with pytest.raises(ZeroDivisionError):
            async with lock("l"):
                raise ZeroDivisionError
        assert await locks.aholder("l") is None
        held = await lock("l").aacquire()
        assert await held.arelease()

    async_to_sync(scenario)()


def test_tasks_take_turns() -> None:
    inside = 0
    entries = []
    shared = lock("l", wait=60)

    @shared
    async def work(number: int) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1, "two have it"
        await asyncio.sleep(0.01)
        entries.append(number)
        inside -= 1

    async def block(number: int) -> None:
        async with shared as held:
            assert not held.lost
            entries.append(number)

    async def scenario() -> None:
        await asyncio.gather(
            *(work(number) for number in range(4)), *(block(number) for number in range(4, 8))
        )

    async_to_sync(scenario)()
    assert sorted(entries) == list(range(8)) and not Lock.objects.exists()


def test_who_is_cancelled_while_it_waits() -> None:
    async def scenario() -> None:
        async with lock("l"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2), lock("l", wait=60):
                    raise AssertionError("two have it")
            assert await locks.aholder("l") is not None

    async_to_sync(scenario)()
    assert not Lock.objects.exists()


@pytest.mark.parametrize("times", [1, 2, 5])
def test_who_is_cancelled_while_it_acquires_leaves_no_lock(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The thread that asks the database cannot be stopped."""
    asking, go_on = threading.Event(), threading.Event()
    take = type(Lock.objects).take

    def slow(self: Any, *args: Any, **options: Any) -> Any:
        asking.set()
        assert go_on.wait(30)
        return take(self, *args, **options)

    monkeypatch.setattr(type(Lock.objects), "take", slow)

    async def scenario() -> None:
        acquiring = asyncio.ensure_future(lock("l").aacquire())
        assert await asyncio.to_thread(asking.wait, 30)
        for _ in range(times):
            acquiring.cancel()
            await asyncio.sleep(0.05)
        asyncio.get_running_loop().call_later(0.1, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await acquiring
        assert not await sync_to_async(Lock.objects.exists)()

    async_to_sync(scenario)()


def test_who_is_cancelled_inside_gives_it_back() -> None:
    async def work(began: asyncio.Event) -> None:
        async with lock("l"):
            began.set()
            await asyncio.sleep(60)

    async def scenario() -> None:
        began = asyncio.Event()
        working = asyncio.ensure_future(work(began))
        await began.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await locks.aholder("l") is None

    async_to_sync(scenario)()
