from __future__ import annotations

from typing import Any

import pytest

from alkstore_django.claims import ClaimedJob
from alkstore_django.models import Attempt
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import columns, history, now, within_a_second

pytestmark = pytest.mark.django_db


def claim(queue: Queue, **options: Any) -> ClaimedJob:
    queue.enqueue(1, **options)
    return again(queue)


HELD = ("worker_id", "claim_expires_at", "claimed_at")


def again(queue: Queue) -> ClaimedJob:
    job = queue.claim_one("w")
    assert job is not None
    return job


def test_what_had_not_started_gets_its_attempt_back(queue: Queue) -> None:
    job = claim(queue, run_at=1_000, max_attempts=1)
    for _ in range(3):
        assert queue.release(job)
        assert columns(job.id, "state", "attempts", "run_at", *HELD) == (
            "pending",
            0,
            1_000,
            None,
            None,
            None,
        )
        job = again(queue)
    assert history(job.id) == []


def test_what_had_started_keeps_its_attempt_spent() -> None:
    def scenario() -> None:
        queue = factories.queue()
        job = claim(queue, run_at=1_000)
        assert queue.release(job, started=True)
        assert columns(job.id, "state", "attempts", "run_at", *HELD) == (
            "pending",
            1,
            now(),
            None,
            None,
            None,
        )
        assert queue.cancel(job.id)

    within_a_second(scenario)


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_but_never_its_last_one(queue: Queue, budget: int) -> None:
    job = claim(queue, max_attempts=budget)
    for _ in range(5):
        assert queue.release(job, started=True)
        job = again(queue)
    assert job.attempts == budget
    assert queue.fail(job, "in the end")


def test_an_interruption_goes_into_the_history(queue: Queue) -> None:
    job = claim(queue, max_attempts=2)
    assert queue.release(job, started=True)
    assert queue.release(again(queue), started=True)
    assert history(job.id) == [("interrupted", 1, 1), ("interrupted", 1, 2)]
    row = Attempt.objects.filter(job_id=job.id).first()
    assert row is not None
    assert (row.error_class, row.worker_id) == ("alkstore_django.exceptions.TaskInterrupted", "w")
