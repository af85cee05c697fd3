"""What the worker's sweeps bury (the expired, the exhausted, what is no JSON) and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest

from alkstore_django import sweeps
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, claimed, history, live, where, within_a_second

pytestmark = pytest.mark.django_db

TASK = '{"__honker_task__":{"task":"a.b","args":[],"kwargs":{}}}'


@pytest.mark.parametrize(
    ("row", "goes"),
    [
        ({"expires_at": at(0)}, True),
        ({"expires_at": at(-1)}, True),
        ({"expires_at": at(1)}, False),
        ({"expires_at": None}, False),
        ({"expires_at": at(0), "run_at": at(60)}, True),
        ({"expires_at": at(0), "attempts": 3}, True),
    ],
    ids=str,
)
def test_waiting_jobs_that_expired(row: Any, goes: bool) -> None:
    def scenario() -> None:
        queue = factories.queue()
        job_id = live(queue.name, **row)
        assert queue.sweep_expired() == goes
        assert where(job_id) == ("dead" if goes else "live")
        if goes:
            info = queue.get_job(job_id)
            assert info is not None
            assert (info.last_error, history(job_id)) == ("expired", [("expired", 1, row.get("attempts", 0))])

    within_a_second(scenario)


@pytest.mark.parametrize(
    ("row", "goes"),
    [
        ({"expires_at": at(-5), "claim_expires_at": at(-1)}, True),
        ({"expires_at": at(0), "claim_expires_at": at(-1)}, True),
        ({"expires_at": at(-5), "claim_expires_at": at(0)}, False),
        ({"expires_at": at(-5), "claim_expires_at": at(60)}, False),
        ({"expires_at": at(1), "claim_expires_at": at(-1)}, False),
    ],
    ids=str,
)
def test_zombies(row: Any, goes: bool) -> None:
    def scenario() -> None:
        queue = factories.queue()
        job_id = claimed(queue.name, **row)
        assert queue.sweep_expired() == goes
        assert where(job_id) == ("dead" if goes else "live")
        if goes:
            assert history(job_id) == [("lost", 1, 1), ("expired", 1, 1)]
            info = queue.get_job(job_id)
            assert info is not None
            assert info.last_error == "expired"

    within_a_second(scenario)


def test_a_sweep_is_of_one_queue(queue: Queue) -> None:
    other = factories.queue()
    mine, theirs = queue.enqueue(1, expires=0), other.enqueue(1, expires=0)
    assert queue.sweep_expired() == 1
    assert (where(mine), where(theirs)) == ("dead", "live")
    assert queue.sweep_expired() == 0


def test_many_in_bounded_batches(queue: Queue) -> None:
    queue.enqueue_many(range(1_100), expires=0)
    assert queue.sweep_expired() == 1_100
    assert factories.DeadJob.objects.filter(queue=queue.name).count() == 1_100
    Job.objects.filter(pk__in=queue.enqueue_many(range(1_100))).update(attempts=3)
    other = live(factories.queue().name, attempts=3)
    assert queue.sweep_exhausted() == 1_100
    assert where(other) == "live"


@pytest.mark.parametrize(
    ("row", "goes"),
    [
        ({"attempts": 3}, True),
        ({"attempts": 4}, True),
        ({"max_attempts": 0}, True),
        ({"max_attempts": -1}, True),
        ({"attempts": 2}, False),
        ({"attempts": 3, "run_at": at(60)}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("by", ["queue", "worker"])
def test_waiting_jobs_without_an_attempt_left(queue: Queue, row: Any, goes: bool, by: str) -> None:
    job_id = live(queue.name, TASK, **row)
    swept = queue.sweep_exhausted() if by == "queue" else sweeps.sweep("default", queue.name)
    assert swept == goes
    assert where(job_id) == ("dead" if goes else "live")
    if goes:
        info = queue.get_job(job_id)
        assert info is not None
        assert info.last_error == "max attempts exceeded"
        (error_class,) = factories.Attempt.objects.filter(job_id=job_id).values_list("error_class", flat=True)
        assert error_class == "alkstore_django.exceptions.AttemptsExhausted"


def test_running_jobs_are_none_of_its_business(queue: Queue) -> None:
    job_id = claimed(queue.name, TASK, attempts=3)
    assert sweeps.sweep("default", queue.name) == 0
    assert queue.sweep_exhausted() == 0
    assert where(job_id) == "live"


@pytest.mark.parametrize("row", [{"expires_at": at(-5)}, {"attempts": 3}], ids=str)
def test_what_is_no_task_is_left_to_its_program(queue: Queue, row: Any) -> None:
    job_id = live(queue.name, '{"to": 1}', **row)
    before = factories.Job.objects.filter(pk=job_id).values().get()
    assert sweeps.sweep("default", queue.name) == 0
    assert factories.Job.objects.filter(pk=job_id).values().get() == before
    assert sweeps.sweep("default", queue.name, tasks_only=False) == 1


def test_what_is_no_json_is_buried_and_the_rest_is_left(queue: Queue) -> None:
    broken = [live(queue.name, text) for text in ("not json", "", '{"__honker_task__"')]
    foreign = [live(queue.name, text) for text in ('{"to": 1}', "[]", "NaN", '"x"')]
    others = [
        live(queue.name, "delayed", run_at=at(60)),
        claimed(queue.name, "running"),
        live(factories.queue().name, "of another queue"),
    ]
    task = live(queue.name, TASK)
    assert sweeps.sweep_undecodable("default", queue.name) == (0, 4)
    assert [where(job_id) for job_id in broken] == ["dead", "dead", "live"]
    assert {where(job_id) for job_id in [*foreign, *others, task]} == {"live"}
    assert history(broken[0]) == [("expired", 1, 0)]
    assert sweeps.sweep_undecodable("default", queue.name) == (0, 4)


def test_it_looks_at_a_bounded_number_and_goes_on_from_there(queue: Queue) -> None:
    ids = queue.enqueue_many(range(700))
    broken = live(queue.name, "not json")
    after, left = sweeps.sweep_undecodable("default", queue.name)
    assert (after, left) == (ids[499], 500)
    assert sweeps.sweep_undecodable("default", queue.name, after) == (0, 200)
    assert where(broken) == "dead"
