from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from alkstore_django import queues
from alkstore_django.models import Run
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, claimed, live, now, where, within_a_second

pytestmark = pytest.mark.django_db


def run(job_id: int) -> Run:
    return Run.objects.get(pk=job_id)


def test_a_waiting_job(queue: Queue) -> None:
    def scenario() -> None:
        job_id = queue.enqueue({"to": "é"}, priority=2, max_attempts=5, delay=60)
        assert queue.cancel(job_id) is True
        assert where(job_id) == "run"
        row = run(job_id)
        assert (row.status, row.queue, row.payload, row.priority) == (
            "cancelled",
            queue.name,
            '{"to":"\\u00e9"}',
            2,
        )
        assert (row.attempts, row.max_attempts, row.worker_id, row.started_at) == (0, 5, "", None)
        assert (row.enqueued_at, row.finished_at, row.expires_at) == (now(), now(), now() + 7 * 86_400)
        assert (row.task, row.duration_ms) == ("", None)

    within_a_second(scenario)


def test_a_running_job_is_lost_to_its_holder(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None
    assert queue.cancel(job_id)
    row = run(job_id)
    assert (row.status, row.attempts, row.worker_id, row.started_at) == (
        "cancelled",
        1,
        "w",
        job.claim.claimed_at,
    )
    assert not queue.ack(job)
    assert not queue.heartbeat(job)
    assert not queue.release(job)


@pytest.mark.parametrize(
    "row",
    [
        {"expires_at": at(-5)},
        {"state": "processing", "worker_id": "gone", "claim_expires_at": at(-5), "attempts": 1},
        {"attempts": 9},
        {"payload": "not json"},
    ],
    ids=str,
)
def test_in_any_state(queue: Queue, row: Any) -> None:
    job_id = live(queue.name, **row)
    assert queue.cancel(job_id)
    assert where(job_id) == "run"


def test_only_once(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    assert queue.cancel(job_id) is True
    assert queue.cancel(job_id) is False
    assert queues.cancel(job_id) is False


def test_what_is_not_live_cannot_be_cancelled(queue: Queue) -> None:
    dead = factories.dead(2**40, queue.name)
    done = factories.run(2**40 + 1, queue.name)
    assert [queue.cancel(job_id) for job_id in (dead, done, 2**50)] == [False, False, False]
    assert (where(dead), where(done)) == ("dead", "run")
    assert run(done).status == Run.SUCCEEDED


def test_of_this_queue_only(queue: Queue) -> None:
    other = factories.queue()
    job_id = other.enqueue(1)
    assert queue.cancel(job_id) is False
    assert where(job_id) == "live"
    assert queues.cancel(job_id) is True
    assert where(job_id) == "run"


@pytest.mark.parametrize("name", ["a.b", "a\x00b", "a\ud800b", "x" * 1000, ""])
def test_the_task_is_remembered_by_its_name(queue: Queue, name: str) -> None:
    """Whatever stands there: the payload may be another program's."""
    job_id = queue.enqueue({"__honker_task__": {"task": name, "args": [], "kwargs": {}}})
    assert queue.cancel(job_id)
    assert run(job_id).task.startswith(name[:1])


def test_how_long_the_fact_is_kept(queue: Queue) -> None:
    def scenario() -> None:
        for ttl in (60, None):
            with override_settings(ALKSTORE={"RESULT_TTL": ttl}):
                job_id = queue.enqueue(1)
                assert queue.cancel(job_id)
                assert run(job_id).expires_at == (None if ttl is None else now() + ttl)

    within_a_second(scenario)


def test_an_older_run_of_that_id_gives_way(queue: Queue) -> None:
    job_id = factories.run(live(queue.name), queue="older")
    assert queue.cancel(job_id)
    assert (run(job_id).queue, run(job_id).status) == (queue.name, "cancelled")


def test_a_claim_that_another_holds(queue: Queue) -> None:
    job_id = claimed(queue.name)
    assert queues.cancel(job_id)
    assert run(job_id).worker_id == "another"
