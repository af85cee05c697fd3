"""A write on a claim that is not held changes nothing and answers False."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from alkstore_django.claims import ClaimedJob
from alkstore_django.models import DeadJob, Job
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, change, columns, history, where, within_a_second

pytestmark = pytest.mark.django_db

Write = Callable[[Queue, ClaimedJob], Any]

WRITES: dict[str, Write] = {
    "ack": lambda queue, job: queue.ack(job),
    "ack_batch": lambda queue, job: queue.ack_batch([job]),
    "retry": lambda queue, job: queue.retry(job, 5, "again"),
    "last retry": lambda queue, job: queue.retry(_last(job), 5, "again"),
    "fail": lambda queue, job: queue.fail(job, "no"),
    "heartbeat": lambda queue, job: queue.heartbeat(job, 600),
    "release": lambda queue, job: queue.release(job),
    "release started": lambda queue, job: queue.release(job, started=True),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


def _last(job: ClaimedJob) -> ClaimedJob:
    """The same claim, of a job that has no attempt left."""
    return replace(job, max_attempts=job.attempts, claim=job.claim._replace(max_attempts=job.attempts))


def claim(queue: Queue) -> ClaimedJob:
    queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None
    return job


def stored() -> list[Any]:
    return [*Job.objects.order_by("id").values(), *DeadJob.objects.order_by("id").values()]


@every_write
def test_a_claim_that_is_held(queue: Queue, write: Write) -> None:
    job = claim(queue)
    before = stored()
    assert write(queue, job) in (True, 1)
    assert stored() != before


@every_write
@pytest.mark.parametrize(
    "loss",
    [
        {"claim_expires_at": at(-1)},
        {"worker_id": "another"},
        {"worker_id": "W"},
        {"worker_id": None},
        {"attempts": 2},
        {"attempts": 0},
        {"state": "pending"},
        {"claim_expires_at": None},
    ],
    ids=str,
)
def test_a_claim_that_was_lost(queue: Queue, write: Write, loss: Any) -> None:
    job = claim(queue)
    change(job.id, **loss)
    before = stored()
    assert write(queue, job) in (False, 0)
    assert stored() == before
    assert history(job.id) == []


@every_write
def test_a_job_that_is_gone(queue: Queue, write: Write) -> None:
    job = claim(queue)
    assert queue.cancel(job.id)
    assert write(queue, job) in (False, 0)
    assert (history(job.id), where(job.id)) == ([], "run")


@every_write
def test_the_second_of_its_end_still_counts(write: Write) -> None:
    def scenario() -> None:
        queue = factories.queue()
        job = claim(queue)
        change(job.id, claim_expires_at=at(0))
        assert write(queue, job) in (True, 1)

    within_a_second(scenario)


@every_write
def test_a_worker_that_comes_back_after_its_job_was_claimed_again(queue: Queue, write: Write) -> None:
    zombie = claim(queue)
    factories.lapse(zombie.id)
    present = queue.claim_one("w")  # even under the same name
    assert present is not None
    before, told = stored(), history(zombie.id)
    assert write(queue, zombie) in (False, 0)
    assert (stored(), history(zombie.id)) == (before, told)
    assert queue.ack(present)


@every_write
def test_a_job_of_another_queue(queue: Queue, write: Write) -> None:
    other = factories.queue()
    job = claim(other)
    before = stored()
    assert write(queue, job) in (False, 0)
    assert stored() == before


@every_write
def test_only_once(queue: Queue, write: Write) -> None:
    job = claim(queue)
    assert write(queue, job) in (True, 1)
    if write is not WRITES["heartbeat"]:
        before = stored()
        assert write(queue, job) in (False, 0)
        assert stored() == before


def test_a_batch_counts_what_was_still_held(queue: Queue) -> None:
    queue.enqueue_many(range(6))
    other = factories.queue()
    jobs = queue.claim_batch("w", 3) + queue.claim_batch("v", 3)
    stranger = claim(other)
    factories.lapse(jobs[1].id)
    change(jobs[4].id, attempts=2)
    assert queue.ack_batch([*jobs, jobs[0], stranger]) == 4
    assert [where(job.id) for job in jobs] == ["", "live", "", "", "live", ""]
    assert where(stranger.id) == "live"
    assert queue.ack_batch([]) == 0
    assert queue.ack_batch(iter(jobs)) == 0


def test_big_batches(queue: Queue) -> None:
    queue.enqueue_many(range(1_050))
    jobs = queue.claim_batch("w", 1_050)
    assert queue.ack_batch(jobs) == 1_050
    assert not Job.objects.filter(queue=queue.name).exists()


def test_a_heartbeat_counts_from_now_and_may_shorten() -> None:
    def scenario() -> None:
        queue = factories.queue()
        job = claim(queue)
        for extend, seconds in ((None, 300), (5, 5), (1, 1)):
            assert queue.heartbeat(job, extend)
            assert columns(job.id, "claim_expires_at") == (factories.now() + seconds,)
        assert columns(job.id, "attempts", "worker_id", "claimed_at") == (1, "w", job.claim.claimed_at)
        assert queue.ack(job)

    within_a_second(scenario)
