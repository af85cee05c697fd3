from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from alkstore_django.claims import ClaimedJob
from alkstore_django.models import Attempt
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, change, columns, history, now, where, within_a_second

pytestmark = pytest.mark.django_db


def claim(queue: Queue, **options: Any) -> ClaimedJob:
    queue.enqueue({"to": 1}, **options)
    job = queue.claim_one("w")
    assert job is not None
    return job


def failure() -> ValueError:
    try:
        raise ValueError("no such\x00 order \ud800")
    except ValueError as error:
        return error


@pytest.mark.parametrize(("delay", "seconds"), [(0, 0), (7, 7), (0.1, 1), (timedelta(minutes=2), 120)])
def test_it_waits_and_keeps_its_attempt_spent(delay: Any, seconds: int) -> None:
    def scenario() -> None:
        queue = factories.queue()
        job = claim(queue, expires=1_000, priority=2)
        before = columns(job.id, "expires_at", "priority", "created_at", "max_attempts", "payload")
        assert queue.retry(job, delay, "again")
        assert columns(job.id, "state", "run_at", "attempts") == ("pending", now() + seconds, 1)
        assert columns(job.id, "worker_id", "claim_expires_at", "claimed_at") == (None, None, None)
        assert columns(job.id, "expires_at", "priority", "created_at", "max_attempts", "payload") == before

    within_a_second(scenario)


def test_the_defaults_are_at_once_and_without_a_word(queue: Queue) -> None:
    job = claim(queue)
    assert queue.retry(job)
    assert queue.claim_one("w") is not None
    assert history(job.id) == [("failed", 1, 1)]


def test_without_an_attempt_left_it_is_a_dead_letter(queue: Queue) -> None:
    job = claim(queue, max_attempts=2)
    assert queue.retry(job, 0, "first")
    job = queue.claim_one("v")  # type: ignore[assignment]
    assert queue.retry(job, 0, "second")
    info = queue.get_job(job.id)
    assert info is not None
    assert (info.state, info.attempts, info.last_error, info.finished_at is not None) == (
        "dead",
        2,
        "second",
        True,
    )
    assert where(job.id) == "dead"
    told = list(Attempt.objects.of_job(job.id).values_list("kind", "attempt", "worker_id", "error"))
    assert told == [("failed", 1, "w", "first"), ("failed", 2, "v", "second")]


@pytest.mark.parametrize("way", ["retry", "fail"])
def test_an_exception_is_kept_with_its_traceback(queue: Queue, way: str) -> None:
    job = claim(queue)
    error = failure()
    assert queue.retry(job, 0, error) if way == "retry" else queue.fail(job, error)
    row = Attempt.objects.get(job_id=job.id)
    assert (row.error_class, row.error) == ("builtins.ValueError", "no such\\x00 order \\ud800")
    assert row.traceback.startswith("Traceback")
    assert "in failure" in row.traceback
    if way == "fail":
        info = queue.get_job(job.id)
        assert info is not None
        assert info.last_error == f"{row.error}\n{row.traceback}"


def test_fail_buries_whatever_the_budget(queue: Queue) -> None:
    job = claim(queue, max_attempts=9, priority=-3, run_at=1_000)
    created_at = columns(job.id, "created_at")[0]
    assert queue.fail(job, "no")
    info = queue.get_job(job.id)
    assert info is not None
    assert (info.state, info.attempts, info.max_attempts, info.priority) == ("dead", 1, 9, -3)
    assert (info.run_at, info.created_at, info.last_error, info.payload) == (
        1_000,
        created_at,
        "no",
        {"to": 1},
    )
    assert info.finished_at is not None
    assert 0 <= now() - info.finished_at <= 5
    assert history(job.id) == [("failed", 1, 1)]


def test_an_error_may_be_huge(queue: Queue) -> None:
    job = claim(queue)
    assert queue.fail(job, "🙂" * 1_000_000)
    info = queue.get_job(job.id)
    assert info is not None
    assert info.last_error is not None
    assert 2_000 <= len(info.last_error) <= 2_010


def test_an_attempt_knows_when_and_by_whom() -> None:
    def scenario() -> None:
        queue = factories.queue()
        job = claim(queue)
        change(job.id, claimed_at=at(-9))
        mine = job.claim._replace(claimed_at=columns(job.id, "claimed_at")[0])
        assert queue.retry(ClaimedJob.of(mine), 0, "x")
        row = Attempt.objects.get(job_id=job.id)
        assert (row.worker_id, row.queue, row.ended_at - (row.started_at or 0)) == ("w", queue.name, 9)
        assert queue.cancel(job.id)

    within_a_second(scenario)


def test_dead_letters_are_not_claimed(queue: Queue) -> None:
    assert queue.fail(claim(queue), "no")
    assert queue.claim_one("w") is None
    assert factories.where(queue.enqueue(2)) == "live"
