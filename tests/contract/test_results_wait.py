"""``results.wait`` and ``results.await_result``: a value, or why there will be none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import looks, queues, results
from alkstore_django.exceptions import ResultDoesNotExist
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.runtime import waiting
from alkstore_django.turns import Outcome, Verdict
from tests import factories
from tests.contract import tasks
from tests.contract.clerk import NO, settle
from tests.contract.watching import is_watched, meanwhile, no_watcher_yet, watchers
from tests.processes import wait_until

__all__ = ["no_watcher_yet"]

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.usefixtures("no_watcher_yet"),
]

Waits = Callable[..., Any]


def wait(job_id: int, timeout: Any = 30, **options: Any) -> Any:
    return results.wait(job_id, timeout, **options)


def await_result(job_id: int, timeout: Any = 30, **options: Any) -> Any:
    async def wait() -> Any:
        return await results.await_result(job_id, timeout, **options)

    return async_to_sync(wait)()


both = pytest.mark.parametrize("waits", [wait, await_result])


def settle_next(verdict: Verdict, **options: Any) -> None:
    job = Queue("default").claim_one("w")
    assert job is not None
    assert settle(Outcome(job.claim, verdict, task="t", **options)) == []


def task() -> int:
    return int(tasks.send.enqueue(1).id)


# -- a value --------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(("text", "value"), [("5", 5), ("null", None)])
def test_of_a_task(waits: Waits, text: str, value: Any) -> None:
    job_id = task()
    with meanwhile(lambda: settle_next(Verdict.ACK, value=text, ttl=60)):
        assert waits(job_id) == value


@both
def test_of_a_job_of_a_queue(waits: Waits, queue: Queue) -> None:
    job_id = queue.enqueue("work")

    def work() -> None:
        job = queue.claim_one("w")
        assert job is not None
        with transaction.atomic():
            assert queue.ack(job)
            results.save(job.id, ["done"])

    with meanwhile(work):
        assert waits(job_id) == ["done"]


@both
def test_it_does_not_wait_for_the_end_of_the_job(waits: Waits, queue: Queue) -> None:
    job_id = queue.enqueue("work")
    with meanwhile(lambda: results.save(job_id, "early")):
        assert waits(job_id) == "early"
    assert factories.where(job_id) == "live"


@both
def test_what_is_saved_is_seen_with_the_commit(waits: Waits, queue: Queue) -> None:
    job_id = queue.enqueue("work")

    def save() -> None:
        for value in ("undone", "done"):
            try:
                with transaction.atomic():
                    results.save(job_id, value)
                    if value == "undone":
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass

    with meanwhile(save):
        assert waits(job_id) == "done"


@both
def test_what_has_been_saved_before(waits: Waits, queue: Queue) -> None:
    results.save(2**40, "of nobody")
    job_id = queue.enqueue("work")
    results.save(job_id, "early", ttl=60)
    assert (waits(2**40, 0), waits(job_id, 0)) == ("of nobody", "early")
    assert watchers() == []


@both
def test_a_value_whose_time_is_over_is_none(waits: Waits, queue: Queue) -> None:
    """Nor does it keep those who wait busy."""
    job_id = queue.enqueue("work")
    factories.result(job_id, '"old"', expires_at=factories.at(-1))
    with meanwhile(lambda: results.save(job_id, "new", ttl=60)):
        assert waits(job_id) == "new"


@both
def test_a_retry_is_no_end(waits: Waits) -> None:
    job_id = task()

    def again() -> None:
        settle_next(Verdict.RETRY, failure=NO)
        settle_next(Verdict.ACK, value="5")

    with meanwhile(again):
        assert waits(job_id) == 5


def test_the_result_of_a_task_waits_for_its_end() -> None:
    """A value that somebody saves before ends no wait for the task."""
    result = tasks.send.enqueue(1)

    def end() -> None:
        results.save(int(result.id), "early")
        settle_next(Verdict.ACK, value="5")

    with meanwhile(end):
        assert result.wait(30).return_value == 5


# -- none -----------------------------------------------------------------------------------------------


def expire() -> None:
    Job.objects.update(expires_at=factories.at(-1))
    assert Queue("default").sweep_expired() == 1


def vanish() -> None:
    """As another program ends a job."""
    Job.objects.all().delete()


def cancel() -> None:
    assert queues.cancel(Job.objects.get().pk)


ENDS: dict[Any, tuple[Callable[[], Any], str, str]] = {
    "dead": (lambda: settle_next(Verdict.DEAD, failure=NO), "no", "it is a dead letter: no"),
    "expired": (expire, "expired", "it expired before it was started"),
    "cancelled": (cancel, "", "it was cancelled"),
    "failed": (lambda: settle_next(Verdict.DISCARD, failure=NO), "", "it was discarded"),
    "succeeded": (lambda: settle_next(Verdict.ACK), "", "it has succeeded, and no value is kept"),
    None: (vanish, "", "none is kept"),
}


@both
@pytest.mark.parametrize("state", ENDS, ids=str)
def test_why_there_will_be_none(waits: Waits, state: Any) -> None:
    end, error, message = ENDS[state]
    job_id = task()
    with (
        meanwhile(end),
        pytest.raises(ResultDoesNotExist, match=f"^Job id={job_id} has no result: {message}") as caught,
    ):
        waits(job_id)
    assert (caught.value.job_id, caught.value.state, caught.value.error) == (job_id, state, error)
    with pytest.raises(ResultDoesNotExist) as caught:
        waits(job_id, 0)
    assert caught.value.state == state


@both
@pytest.mark.parametrize(("error", "state"), [("expired", "expired"), ("expired, nearly", "dead")])
def test_what_honker_buried(waits: Waits, error: str, state: str) -> None:
    factories.dead(2**40, last_error=error)
    with pytest.raises(ResultDoesNotExist) as caught:
        waits(2**40)
    assert (caught.value.state, caught.value.error) == (state, error)


@both
def test_it_failed_with_the_word_of_an_expiry(waits: Waits, queue: Queue) -> None:
    job_id = queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None and queue.fail(job, "expired")
    with pytest.raises(ResultDoesNotExist) as caught:
        waits(job_id)
    assert caught.value.state == "dead"


@both
@pytest.mark.parametrize("job_id", [2**40, 2**63, -1])
def test_what_was_never_there(waits: Waits, job_id: int) -> None:
    with pytest.raises(ResultDoesNotExist) as caught:
        waits(job_id)
    assert caught.value.state is None
    assert watchers() == []


@both
@pytest.mark.parametrize("timeout", [0, 0.2, timedelta(milliseconds=200)], ids=str)
def test_timeout(waits: Waits, queue: Queue, timeout: Any) -> None:
    job_id = queue.enqueue(1)
    with pytest.raises(TimeoutError, match=f"Job id={job_id} has not ended within 0"):
        waits(job_id, timeout)


@both
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((1, -1), ValueError, "timeout"),
        ((1, float("nan")), ValueError, "timeout"),
        ((1, "1"), TypeError, "timeout"),
        (("1", 1), TypeError, r"job_id .* int\(result.id\)"),
        ((None, 1), TypeError, "job_id"),
    ],
    ids=str,
)
def test_bad_input(waits: Waits, given: Any, error: type[Exception], message: str) -> None:
    with CaptureQueriesContext(connection) as captured, pytest.raises(error, match=message):
        waits(*given)
    assert captured.captured_queries == []


@both
def test_not_in_a_transaction(waits: Waits, queue: Queue) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="Waiting in a transaction"):
        waits(queue.enqueue(1))


def test_not_in_an_event_loop() -> None:
    async def wait() -> None:
        results.wait(1, 1)

    with pytest.raises(SynchronousOnlyOperation, match=r"await results.await_result\(\)"):
        async_to_sync(wait)()


@both
def test_in_another_database(waits: Waits, queue: Queue) -> None:
    there = Queue(queue.name, using="other").enqueue(1)

    def save() -> None:
        wait_until(lambda: is_watched("other"))
        results.save(there, "there", using="other")
        connections.close_all()

    thread = threading.Thread(target=save)
    thread.start()
    assert waits(there, using="other") == "there"
    thread.join()


@pytest.mark.django_db(transaction=False)
def test_in_a_test_case(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    with pytest.raises(RuntimeError, match="In a TestCase"):
        wait(job_id)
    results.save(job_id, 1)
    assert wait(job_id) == 1


@both
def test_without_a_watcher(waits: Waits, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def refuse(using: str, ids: Any) -> set[int]:
        tried.set()
        raise OperationalError("too many connections")

    monkeypatch.setattr(looks, "saved", refuse)
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    job_id = queue.enqueue(1)

    def save() -> None:
        assert tried.wait(30)
        results.save(job_id, 1)
        connections.close_all()

    thread = threading.Thread(target=save)
    thread.start()
    assert waits(job_id) == 1
    thread.join()


@pytest.mark.only("postgresql")
def test_it_is_told_and_does_not_look_in_between(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    from alkstore_django.runtime.wake.ends import ToldEnds

    for pace in ("fastest", "slowest"):
        monkeypatch.setattr(ToldEnds, pace, 1000.0)
    asked: list[int] = []
    saved = looks.saved

    def count(using: str, ids: Any) -> set[int]:
        found = saved(using, ids)
        asked.append(len(ids))  # when it has read: what is saved from now on is for the next one
        return found

    monkeypatch.setattr(looks, "saved", count)
    job_id, other = queue.enqueue(1), queue.enqueue(2)

    def act() -> None:
        wait_until(lambda: asked, what="the first look")
        asked.clear()
        results.save(other, "another")
        assert asked == []
        results.save(job_id, "value")

    with meanwhile(act):
        assert wait(job_id) == "value"
    assert asked == [1]
