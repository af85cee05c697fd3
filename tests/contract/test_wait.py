"""``result.wait()`` and ``await result.await_result()``: when they return, and with what."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.db import OperationalError, connection, connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from alkstore_django import looks, queues
from alkstore_django.compat import TaskResultDoesNotExist, TaskResultStatus
from alkstore_django.exceptions import TaskCancelled, TaskExpired
from alkstore_django.models import Job, Run
from alkstore_django.queues import Queue
from alkstore_django.runtime import waiting, watcher
from tests import factories
from tests.contract import tasks
from tests.contract.clerk import NO, settle
from tests.contract.watching import is_watched, meanwhile, no_watcher_yet, waiters, watchers
from tests.processes import wait_until

__all__ = ["no_watcher_yet"]

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.usefixtures("no_watcher_yet"),
]

Waits = Callable[..., Any]


def wait(result: Any, timeout: Any = 30) -> Any:
    return result.wait(timeout)


def await_result(result: Any, timeout: Any = 30) -> Any:
    async def wait() -> Any:
        return await result.await_result(timeout)

    return async_to_sync(wait)()


both = pytest.mark.parametrize("waits", [wait, await_result])


def claim() -> Any:
    job = Queue("default").claim_one("w")
    assert job is not None
    return job


def succeed() -> None:
    assert settle(outcome(claim().claim, "ACK", value="5")) == []


def fail() -> None:
    assert settle(outcome(claim().claim, "DEAD", failure=NO)) == []


def discard() -> None:
    assert settle(outcome(claim().claim, "DISCARD", failure=NO)) == []


def outcome(job: Any, verdict: str, **options: Any) -> Any:
    from alkstore_django.turns import Outcome, Verdict

    return Outcome(job, Verdict[verdict], task="t", **options)


@both
def test_success(waits: Waits) -> None:
    result = tasks.send.enqueue(1)
    with meanwhile(succeed):
        assert waits(result) is result
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 5)


@both
@pytest.mark.parametrize("ends", [fail, discard])
def test_failure(waits: Waits, ends: Callable[[], None]) -> None:
    result = tasks.send.enqueue(1)
    with meanwhile(ends):
        waits(result)
    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [ValueError]


@both
def test_cancelled(waits: Waits) -> None:
    result = tasks.send.enqueue(1)
    with meanwhile(lambda: queues.cancel(int(result.id))):
        waits(result)
    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [TaskCancelled]


@both
def test_expired(waits: Waits) -> None:
    result = tasks.send.using(expires=1000).enqueue(1)

    def expire() -> None:
        factories.change(int(result.id), expires_at=factories.at(-1))
        assert Queue("default").sweep_expired() == 1

    with meanwhile(expire):
        waits(result)
    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [TaskExpired]


@both
def test_what_another_program_finished(waits: Waits) -> None:
    """It leaves no record: there is no result to wait for any more."""
    result = tasks.send.enqueue(1)
    with meanwhile(lambda: Job.objects.filter(pk=result.id).delete()), pytest.raises(TaskResultDoesNotExist):
        waits(result)


@both
def test_what_is_not_there(waits: Waits) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        never = tasks.send.enqueue(1)
        raise ZeroDivisionError
    pruned = tasks.send.enqueue(1)
    succeed()
    Run.objects.update(expires_at=1)
    for result in (never, pruned):
        with pytest.raises(TaskResultDoesNotExist):
            waits(result)
    assert watchers() == []


@both
def test_what_has_ended_before(waits: Waits) -> None:
    result = tasks.send.enqueue(1)
    succeed()
    assert waits(result, 0).return_value == 5
    assert watchers() == []


@both
@pytest.mark.parametrize("timeout", [0, 0.2, timedelta(milliseconds=200)])
def test_timeout(waits: Waits, timeout: Any) -> None:
    result = tasks.send.enqueue(1)
    claim()
    with pytest.raises(TimeoutError, match=f"Job id={result.id} has not ended within 0"):
        waits(result, timeout)
    assert result.status == TaskResultStatus.RUNNING


@both
@pytest.mark.parametrize(
    ("timeout", "error"), [(-1, ValueError), ("1", TypeError), (float("nan"), ValueError)]
)
def test_bad_timeouts(waits: Waits, timeout: Any, error: type[Exception]) -> None:
    result = tasks.send.enqueue(1)
    with CaptureQueriesContext(connection) as captured, pytest.raises(error, match="timeout"):
        waits(result, timeout)
    assert captured.captured_queries == []


@both
def test_a_retry_is_no_end(waits: Waits) -> None:
    """Nor is a dead letter that gets a new life while somebody waits for it."""
    result = tasks.send.enqueue(1)

    def again() -> None:
        assert settle(outcome(claim().claim, "RETRY", failure=NO)) == []
        succeed()

    with meanwhile(again):
        waits(result)
    assert (result.status, result.attempts) == (TaskResultStatus.SUCCESSFUL, 2)


@both
def test_not_in_a_transaction(waits: Waits) -> None:
    before = tasks.send.enqueue(1)
    with transaction.atomic():
        for result in (before, tasks.send.enqueue(2)):
            with pytest.raises(RuntimeError, match="Waiting in a transaction of database 'default'"):
                waits(result)
    with transaction.atomic(using="other"), pytest.raises(TimeoutError):  # it has nothing to do with it
        waits(before, 0)


def test_not_without_autocommit() -> None:
    result = tasks.send.enqueue(1)
    transaction.set_autocommit(False)
    try:
        with pytest.raises(RuntimeError, match="Waiting needs autocommit"):
            wait(result)
    finally:
        transaction.set_autocommit(True)


@pytest.mark.django_db(transaction=False)
def test_in_a_test_case() -> None:
    """What has ended can be waited for, as if it were no transaction; nothing else ever ends."""
    result = tasks.send.enqueue(1)
    with pytest.raises(RuntimeError, match="In a TestCase no task ends by itself"):
        wait(result)
    succeed()
    assert wait(result).return_value == 5
    with transaction.atomic(), pytest.raises(RuntimeError, match="Waiting in a transaction"):
        wait(result)


def test_not_in_an_event_loop() -> None:
    result = tasks.send.enqueue(1)

    async def wait() -> None:
        result.wait(1)

    with pytest.raises(SynchronousOnlyOperation, match="await result.await_result"):
        async_to_sync(wait)()


@override_settings(
    TASKS={
        **settings.TASKS,
        "far": {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "OPTIONS": {"DATABASE": "other"}},
    }
)
def test_in_the_database_of_the_result() -> None:
    result = tasks.send.using(backend="far").enqueue(1)

    def cancel() -> None:
        wait_until(lambda: is_watched("other"))
        assert queues.cancel(int(result.id), using="other")

    thread = threading.Thread(target=lambda: (cancel(), connections.close_all()))
    thread.start()
    assert wait(result).status == TaskResultStatus.FAILED
    thread.join()


def test_nothing_stays_behind() -> None:
    result = tasks.send.enqueue(1)
    with pytest.raises(TimeoutError):
        wait(result, 0.1)
    assert watchers() == []


# -- many ---------------------------------------------------------------------------------------------


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ids each look of a watcher asks for."""
    asked: list[int] = []

    def live(using: str, ids: Any) -> set[int]:
        found = looks_live(using, ids)
        asked.append(len(ids))  # when it has read: what ends from now on is for the next one
        return found

    looks_live = looks.live
    monkeypatch.setattr(looks, "live", live)
    return asked


def test_many_threads_have_one_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [tasks.send.enqueue(number) for number in range(20)]
    asked = count_looks(monkeypatch)
    statuses: list[Any] = []

    def work(result: Any) -> None:
        statuses.append(result.wait(60).status)
        connections.close_all()

    threads = [threading.Thread(target=work, args=[result]) for result in results]
    for thread in threads:
        thread.start()
    wait_until(lambda: waiters() == 20)
    assert len(watchers()) == 1
    asked.clear()
    for _ in results:
        succeed()
    for thread in threads:
        thread.join()
    assert statuses == [TaskResultStatus.SUCCESSFUL] * 20
    assert 1 <= len(asked) <= 60  # and not 20 for each end


def test_many_coroutines(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no thread for each of them."""
    results = [tasks.send.enqueue(number) for number in range(200)]

    async def wait_for_all() -> list[Any]:
        waits = asyncio.gather(*(result.await_result(60) for result in results))
        await sync_to_async(wait_until, thread_sensitive=False)(lambda: waiters() == 200)
        assert len(watchers()) == 1
        assert threading.active_count() < 20

        def end() -> None:
            jobs = Queue("default").claim_batch("w", 200)
            assert settle(*(outcome(job.claim, "ACK", value="5") for job in jobs)) == []
            connections.close_all()

        await sync_to_async(end, thread_sensitive=False)()
        return await waits

    found = async_to_sync(wait_for_all)()
    assert [result.return_value for result in found] == [5] * 200


def test_a_coroutine_that_is_cancelled() -> None:
    result = tasks.send.enqueue(1)

    async def give_up() -> None:
        task = asyncio.ensure_future(result.await_result())
        await sync_to_async(wait_until, thread_sensitive=False)(is_watched)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async_to_sync(give_up)()
    wait_until(lambda: watchers() == [], what="the watcher ends")


# -- trouble ------------------------------------------------------------------------------------------


@both
def test_without_a_watcher(waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits looks by himself, now and then."""
    tried = threading.Event()

    def refuse(using: str, ids: Any) -> set[int]:
        tried.set()
        raise OperationalError("too many connections")

    monkeypatch.setattr(looks, "live", refuse)
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    result = tasks.send.enqueue(1)

    def end() -> None:
        assert tried.wait(30)
        succeed()
        connections.close_all()

    thread = threading.Thread(target=end)
    thread.start()
    assert waits(result).return_value == 5
    thread.join()


def test_a_watcher_that_ends_is_left_to_itself() -> None:
    """Whoever comes while it decides to end is seen by it, or sees that."""
    for _ in range(30):
        result = tasks.send.enqueue(1)
        threads = [threading.Thread(target=wait_in_vain, args=[result]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wait_until(lambda: watchers() == [])


def test_in_a_fork() -> None:
    """The threads of its parent are not there."""
    orphan = watcher.Watcher("default")
    orphan._pid = -1
    watcher._watchers["default"] = orphan
    result = tasks.send.enqueue(1)
    with meanwhile(succeed):
        assert wait(result).return_value == 5
    assert not orphan.thread.is_alive()
    assert watcher._watchers["default"] is not orphan


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits is told, and the next one tries again."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    result = tasks.send.enqueue(1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                wait(result)
    with meanwhile(succeed):
        assert wait(result).return_value == 5


def wait_in_vain(result: Any) -> None:
    with pytest.raises(TimeoutError):
        result.wait(0.002)
    connections.close_all()


# -- what tells ---------------------------------------------------------------------------------------


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("end", [succeed, fail, lambda: queues.cancel(claim().id)])
def test_it_is_told_and_does_not_look_in_between(
    end: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from alkstore_django.runtime.wake.ends import ToldEnds

    for pace in ("fastest", "slowest"):
        monkeypatch.setattr(ToldEnds, pace, 1000.0)
    asked = count_looks(monkeypatch)
    result = tasks.send.enqueue(1)
    others = [tasks.send.using(queue_name="others").enqueue(number) for number in range(5)]

    def act() -> None:
        wait_until(lambda: asked, what="the first look")
        asked.clear()
        for other in others:
            assert other.cancel()
        assert asked == []
        end()

    with meanwhile(act):
        wait(result)
    assert asked == [1]


@pytest.mark.only("postgresql")
def test_nobody_is_told_where_nobody_listens() -> None:
    from tests import ears

    with ears.ear(channel="alkstore_ends") as ear:
        for end in (succeed, fail):
            tasks.send.enqueue(1)
            end()
        assert ear.rings() == 0
        result = tasks.send.enqueue(1)
        with meanwhile(succeed):
            wait(result)
        assert ear.rings() == 1


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("count", [3, 2_000])
def test_many_ends_at_once(count: int) -> None:
    """More ids than a notification can hold."""
    results = tasks.send.enqueue_many([(number,) for number in range(count)])

    def end() -> None:
        jobs = Queue("default").claim_batch("w", count)
        assert settle(*(outcome(job.claim, "ACK") for job in jobs)) == []

    with meanwhile(end):
        started = time.monotonic()
        wait(results[-1])
    assert time.monotonic() - started < 30


@pytest.mark.only("postgresql", "sqlite")
def test_switched_off(settings: Any) -> None:
    settings.ALKSTORE = {"NOTIFY": False, "DOORBELL": False}
    result = tasks.send.enqueue(1)
    with meanwhile(succeed):
        assert wait(result).return_value == 5
