from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from alkstore_django.queues import Queue
from tests import factories
from tests.factories import columns, now, within_a_second

pytestmark = pytest.mark.django_db

TIMES = ("run_at", "expires_at", "created_at")


def test_the_defaults(queue: Queue) -> None:
    def enqueue() -> None:
        job_id = queue.enqueue({"to": 1})
        assert type(job_id) is int
        assert columns(job_id, "queue", "payload", "state", "priority", "attempts", "max_attempts") == (
            queue.name,
            '{"to":1}',
            "pending",
            0,
            0,
            3,
        )
        assert columns(job_id, "worker_id", "claim_expires_at", "claimed_at") == (None, None, None)
        assert columns(job_id, *TIMES) == (now(), None, now())

    within_a_second(enqueue)


@pytest.mark.parametrize(
    ("options", "run_in", "expires_in"),
    [
        ({"delay": 60}, 60, None),
        ({"delay": 0.2}, 1, None),
        ({"delay": timedelta(minutes=1)}, 60, None),
        ({"expires": 30}, 0, 30),
        ({"expires": timedelta(hours=1), "delay": 5}, 5, 3600),
        ({"expires": 0}, 0, 0),
        ({"delay": None, "run_at": None, "expires": None}, 0, None),
    ],
    ids=str,
)
def test_times_from_now(queue: Queue, options: Any, run_in: int, expires_in: int | None) -> None:
    def enqueue() -> None:
        start = now()
        run_at, expires_at, created_at = columns(queue.enqueue(1, **options), *TIMES)
        assert (run_at - start, created_at - start) == (run_in, 0)
        assert expires_at == (None if expires_in is None else start + expires_in)

    within_a_second(enqueue)


@pytest.mark.parametrize(
    ("run_at", "stored"),
    [
        (datetime(2030, 1, 1, tzinfo=UTC), 1_893_456_000),
        (datetime(2030, 1, 1, 5, 45, tzinfo=ZoneInfo("Asia/Kathmandu")), 1_893_456_000),
        (1_893_456_000, 1_893_456_000),
        (1_893_455_999.5, 1_893_456_000),
        (0, 0),
        (253_402_300_799, 253_402_300_799),
    ],
    ids=str,
)
def test_moments(queue: Queue, run_at: Any, stored: int) -> None:
    assert columns(queue.enqueue(1, run_at=run_at), "run_at") == (stored,)


def test_what_lies_in_the_past_is_due(queue: Queue) -> None:
    job_id = queue.enqueue(1, run_at=datetime(2001, 1, 1, tzinfo=UTC))
    job = queue.claim_one("w")
    assert job is not None
    assert job.id == job_id


def test_budget_and_priority() -> None:
    queue = factories.queue(max_attempts=7)
    assert columns(queue.enqueue(1), "max_attempts", "priority") == (7, 0)
    job_id = queue.enqueue(1, max_attempts=1, priority=-(2**31))
    assert columns(job_id, "max_attempts", "priority") == (1, -(2**31))
    assert columns(queue.enqueue(1, priority=2**31 - 1), "priority") == (2**31 - 1,)


@pytest.mark.parametrize(
    "payload",
    [
        2**70,
        -(2**63) - 1,
        "a\x00b",
        {"k\x00": "\ud800"},
        "🙂 é \\ \" ' % %s %(id)s \\u0000 \n",
        "x" * 70_000,
        None,
        [],
        {},
        False,
        0.1,
        [[[{"a": [None]}]]],
    ],
    ids=lambda value: repr(value)[:20],
)
def test_every_payload_comes_back(queue: Queue, payload: Any) -> None:
    one, (two, three) = queue.enqueue(payload), queue.enqueue_many([payload, payload])
    claimed = queue.claim_batch("w", 3)
    assert [(job.id, job.payload) for job in claimed] == [(one, payload), (two, payload), (three, payload)]
    info = queue.get_job(one)
    assert info is not None
    assert (info.payload, info.raw_payload.isascii()) == (payload, True)


def test_ids_grow(queue: Queue) -> None:
    ids = [queue.enqueue(number) for number in range(5)]
    assert ids == sorted(set(ids))


def test_a_claimed_job_has_what_was_enqueued() -> None:
    def claim() -> None:
        queue = factories.queue(visibility_timeout=timedelta(seconds=30))
        job_id = queue.enqueue({"to": [1]}, priority=4, max_attempts=2, run_at=1_000)
        job = queue.claim_one("worker 1")
        assert job is not None
        assert (job.id, job.queue, job.payload, job.priority, job.run_at) == (
            job_id,
            queue.name,
            {"to": [1]},
            4,
            1_000,
        )
        assert (job.attempts, job.max_attempts, job.worker_id) == (1, 2, "worker 1")
        assert job.claim_expires_at == now() + 30
        queue.ack(job)

    within_a_second(claim)
