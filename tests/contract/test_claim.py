"""What can be claimed at which second (honker-spec 2.1), without waiting for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db import transaction as django_transaction

from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql.tables import LIVE
from tests import factories
from tests.factories import at, claimed, columns, history, live, now, where, within_a_second

pytestmark = pytest.mark.django_db


def ids(jobs: list[Any]) -> list[int]:
    return [job.id for job in jobs]


@pytest.mark.parametrize(
    ("row", "can_be_claimed"),
    [
        ({"run_at": at(0)}, True),
        ({"run_at": at(1)}, False),
        ({"run_at": at(-1)}, True),
        ({"expires_at": at(1)}, True),
        ({"expires_at": at(0)}, False),
        ({"expires_at": at(-1)}, False),
        ({"expires_at": None}, True),
        ({"attempts": 2, "max_attempts": 3}, True),
        ({"attempts": 3, "max_attempts": 3}, False),
        ({"attempts": 4, "max_attempts": 3}, False),
        ({"max_attempts": 0}, False),
        ({"max_attempts": -1}, False),
        ({"attempts": -5}, True),
        ({"state": "unknown"}, False),
    ],
    ids=str,
)
def test_waiting_rows(row: dict[str, Any], can_be_claimed: bool) -> None:
    def claim() -> None:
        queue = factories.queue()
        job_id = live(queue.name, **row)
        assert ids(queue.claim_batch("w", 5)) == ([job_id] if can_be_claimed else [])
        assert columns(job_id, "worker_id") == ("w" if can_be_claimed else None,)

    within_a_second(claim)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"claim_expires_at": at(1)}, "held"),
        ({"claim_expires_at": at(0)}, "held"),
        ({"claim_expires_at": at(-1)}, "claimed again"),
        ({"claim_expires_at": at(-1), "attempts": 2}, "claimed again"),
        ({"claim_expires_at": at(-1), "attempts": 3}, "dead"),
        ({"claim_expires_at": at(0), "attempts": 3}, "held"),
        ({"claim_expires_at": at(-1), "expires_at": at(1)}, "claimed again"),
        ({"claim_expires_at": at(-1), "expires_at": at(0)}, "dead"),
        ({"claim_expires_at": at(0), "expires_at": at(-5)}, "held"),
    ],
    ids=str,
)
def test_rows_that_another_worker_holds_or_held(row: dict[str, Any], expected: str) -> None:
    def claim() -> None:
        queue = factories.queue()
        job_id = claimed(queue.name, **row)
        attempts = row.get("attempts", 1)
        found = queue.claim_batch("w", 5)
        if expected == "claimed again":
            assert ids(found) == [job_id]
            assert found[0].attempts == attempts + 1
            assert columns(job_id, "worker_id", "claimed_at") == ("w", now())
        else:
            assert found == []
            assert where(job_id) == ("live" if expected == "held" else "dead")

    within_a_second(claim)


def test_a_claim_spends_an_attempt_and_says_until_when() -> None:
    def claim() -> None:
        queue = factories.queue(visibility_timeout=1.5)
        job_id = queue.enqueue(1)
        job = queue.claim_one("w")
        assert job is not None
        expected = ("processing", "w", now() + 2, 1, now())
        assert columns(job_id, "state", "worker_id", "claim_expires_at", "attempts", "claimed_at") == expected
        assert queue.claim_one("another") is None

    within_a_second(claim)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5.0])
def test_as_many_as_wanted_and_there_are(queue: Queue, n: Any) -> None:
    made = queue.enqueue_many(range(4))
    assert ids(queue.claim_batch("w", n)) == made[: int(n)]


def test_only_of_this_queue(queue: Queue) -> None:
    other = factories.queue()
    mine, theirs = queue.enqueue(1), other.enqueue(2)
    assert ids(queue.claim_batch("w", 5)) == [mine]
    assert ids(other.claim_batch("w", 5)) == [theirs]


def test_many(queue: Queue) -> None:
    made = queue.enqueue_many(range(1_200))
    assert ids(queue.claim_batch("w", 1_100)) == made[:1_100]
    Job.objects.filter(queue=queue.name).update(claim_expires_at=at(-1))
    assert ids(queue.claim_batch("w", 1_200)) == made


def test_an_empty_queue(queue: Queue) -> None:
    assert queue.claim_one("w") is None
    assert queue.claim_batch("w", 5) == []


def test_a_lapsed_claim_goes_into_the_history(queue: Queue) -> None:
    job_id = claimed(queue.name, attempts=1)
    for _ in range(2):
        factories.lapse(job_id)
        assert queue.claim_one("w") is not None
    factories.lapse(job_id)
    assert queue.claim_one("w") is None
    assert history(job_id) == [("lost", 1, 1), ("lost", 1, 2), ("lost", 1, 3)]
    info = queue.get_job(job_id)
    assert info is not None
    assert (info.state, info.attempts) == ("dead", 3)
    assert info.last_error == "max attempts exceeded: worker w vanished in attempt 3 of 3"


def test_who_was_lost_is_told(queue: Queue) -> None:
    from alkstore_django.models import Attempt

    job_id = claimed(queue.name, worker_id="host-1", claim_expires_at=at(-1))
    claimed_at = columns(job_id, "claimed_at")[0]
    queue.claim_one("w")
    lost = Attempt.objects.get(job_id=job_id)
    assert (lost.kind, lost.worker_id, lost.started_at, lost.queue) == (
        "lost",
        "host-1",
        claimed_at,
        queue.name,
    )
    assert lost.error_class == "alkstore_django.exceptions.WorkerLost"
    assert lost.error == "worker host-1 vanished in attempt 1 of 3"
    assert lost.ended_at >= claimed_at


def test_thousands_of_stale_rows_go_in_bounded_steps(queue: Queue) -> None:
    """Half of them have an attempt left; a fresh job of higher priority is not held up."""
    Job.objects.bulk_create(
        Job(
            queue=queue.name,
            payload="1",
            state="processing",
            worker_id="gone",
            claim_expires_at=at(-3600),
            run_at=at(-7200),
            created_at=at(-7200),
            attempts=1 + number % 2,
            max_attempts=2,
        )
        for number in range(5_000)
    )
    stale = Job.objects.filter(queue=queue.name, state="processing", worker_id="gone")
    seen: set[int] = set()
    steps = []
    for _ in range(40):
        before = stale.count()
        fresh = queue.enqueue("fresh", priority=1)
        batch = queue.claim_batch("w", 100)
        steps.append(before - stale.count())
        assert batch[0].id == fresh
        seen |= set(ids(batch)) - {fresh}
        assert queue.ack_batch(batch) == len(batch)
    assert max(steps) <= 500
    assert len(seen) == 2_500
    reasons = factories.DeadJob.objects.filter(queue=queue.name).values_list("last_error", flat=True)
    assert len(reasons) == 2_500
    assert set(reasons) == {"max attempts exceeded: worker gone vanished in attempt 2 of 2"}


def test_undecodable_payloads_die_at_once_and_hold_up_nobody(queue: Queue) -> None:
    texts = ["not json", "", '{"a":', "\x7f\\", "[" * 50_000]
    broken = [live(queue.name, text, priority=5) for text in texts]
    good = queue.enqueue_many(["a", "b"])
    assert ids(queue.claim_batch("w", 2)) == good
    assert [where(job_id) for job_id in broken] == ["dead"] * 5
    for job_id, text in zip(broken, texts, strict=True):
        info = queue.get_job(job_id)
        assert info is not None
        assert (info.raw_payload, info.payload) == (text, text)
        assert info.last_error is not None
        assert info.last_error.startswith("the payload is not JSON text")
        assert history(job_id) == [("failed", 1, 1)]


def test_inside_of_a_transaction_of_the_caller(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    with django_transaction.atomic():
        job = queue.claim_one("w")
        assert job is not None
        assert queue.ack(job)
    assert where(job_id) == ""
    assert connection.in_atomic_block  # that of the test


def test_a_claim_is_given_up_with_the_transaction(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    with pytest.raises(ZeroDivisionError), django_transaction.atomic():
        assert queue.claim_one("w") is not None
        raise ZeroDivisionError
    assert columns(job_id, "state", "attempts") == ("pending", 0)


@pytest.mark.django_db(transaction=True)
def test_what_is_claimed_is_returned_whatever_fails_then(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise nobody would hold it, and an attempt that nobody made were its last."""
    good = queue.enqueue(1, max_attempts=1, priority=1)
    broken = live(queue.name, "{no json")

    def fail(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(f"SELECT id, attempts FROM {LIVE}"):  # to bury it
            raise OperationalError("the connection is lost")
        return execute(sql, *rest)

    with connection.execute_wrapper(fail):
        (job,) = queue.claim_batch("w", 5)
    assert job.id == good and "fewer jobs are claimed" in caplog.text
    assert queue.ack(job) and where(broken) == "live"
    with connection.execute_wrapper(fail), pytest.raises(OperationalError), django_transaction.atomic():
        live(queue.name, "{no json", priority=-1)
        queue.enqueue(2, priority=1)
        queue.claim_batch("w", 5)
