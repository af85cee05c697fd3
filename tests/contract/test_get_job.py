from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alkstore_django import queues
from alkstore_django.inspection import JobInfo
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at

pytestmark = pytest.mark.django_db


def look(queue: Queue, job_id: int) -> JobInfo:
    info = queue.get_job(job_id)
    assert info is not None
    assert queues.get_job(job_id) == info
    return info


def test_waiting(queue: Queue) -> None:
    info = look(queue, queue.enqueue({"to": 1}, priority=2, delay=60, expires=600))
    assert (info.state, info.queue, info.payload, info.raw_payload) == (
        "pending",
        queue.name,
        {"to": 1},
        '{"to":1}',
    )
    assert (info.priority, info.attempts, info.max_attempts) == (2, 0, 3)
    assert info.run_at == info.created_at + 60
    assert info.expires_at == info.created_at + 600
    assert (info.worker_id, info.claim_expires_at, info.claimed_at, info.finished_at, info.last_error) == (
        None,
    ) * 5


def test_running(queue: Queue) -> None:
    queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None
    info = look(queue, job.id)
    assert (info.state, info.worker_id, info.attempts) == ("processing", "w", 1)
    assert (info.claim_expires_at, info.claimed_at) == (job.claim_expires_at, job.claim.claimed_at)


def test_dead(queue: Queue) -> None:
    job_id = factories.dead(
        2**40, queue.name, "[1]", last_error="no", died_at=5, created_at=4, run_at=3, priority=1
    )
    info = look(queue, job_id)
    assert (info.state, info.payload, info.last_error, info.finished_at) == ("dead", [1], "no", 5)
    assert (info.created_at, info.run_at, info.priority, info.attempts) == (4, 3, 1, 3)


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_finished(queue: Queue, status: str) -> None:
    info = look(queue, factories.run(2**40, queue.name, "[1]", status=status, started_at=7, finished_at=8))
    assert (info.state, info.payload, info.claimed_at, info.finished_at) == (status, [1], 7, 8)
    assert (info.run_at, info.worker_id) == (None, "w")


@pytest.mark.parametrize(
    ("ends", "found"), [(at(1), True), (at(0), False), (at(-1), False), (None, True)], ids=str
)
def test_a_run_whose_time_is_over_is_gone(ends: Any, found: bool) -> None:
    def scenario() -> None:
        job_id = next(free_ids)
        factories.run(job_id, expires_at=ends)
        assert (queues.get_job(job_id) is not None) == found

    factories.within_a_second(scenario)


free_ids = iter(range(2**41, 2**42))


def test_live_comes_before_dead_and_dead_before_finished(queue: Queue) -> None:
    job_id = queue.enqueue("live")
    factories.dead(job_id, queue.name, '"dead"')
    factories.run(job_id, queue.name, '"done"')
    assert look(queue, job_id).payload == "live"
    factories.Job.objects.filter(pk=job_id).delete()
    assert look(queue, job_id).payload == "dead"
    factories.DeadJob.objects.filter(pk=job_id).delete()
    assert look(queue, job_id).payload == "done"


def test_of_this_queue_only(queue: Queue) -> None:
    other = factories.queue()
    dead, done = factories.dead(2**40, other.name), factories.run(2**40 + 1, other.name)
    for job_id in (other.enqueue(1), dead, done):
        assert queue.get_job(job_id) is None
        assert other.get_job(job_id) is not None
        assert queues.get_job(job_id) is not None


def test_an_acked_job_is_gone(queue: Queue) -> None:
    queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None
    assert queue.ack(job)
    assert queues.get_job(job.id) is None


def test_a_payload_that_is_not_json(queue: Queue) -> None:
    info = look(queue, factories.live(queue.name, "not json"))
    assert (info.payload, info.raw_payload) == ("not json", "not json")


def test_a_job_that_comes_back_to_life_between_two_looks(queue: Queue) -> None:
    """When the live table was looked at it was dead, and when the dead were looked at it was live."""
    job_id = factories.dead(2**40, queue.name)

    def requeue_first(execute: Any, sql: str, *rest: Any) -> Any:
        if f"FROM {connection.ops.quote_name('_honker_dead')}" in sql and where(job_id) == "dead":
            assert queues.requeue([job_id])
        return execute(sql, *rest)

    def where(job_id: int) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM _honker_live WHERE id = %s", [job_id])
            return "live" if cursor.fetchone() else "dead"

    with connection.execute_wrapper(requeue_first):
        info = queue.get_job(job_id)
    assert info is not None
    assert info.state == "pending"


def test_it_reads_and_takes_no_lock(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    with CaptureQueriesContext(connection) as captured:
        queue.get_job(job_id)
    assert len(captured) == 1
    assert "FOR UPDATE" not in captured[0]["sql"]
