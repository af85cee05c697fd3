"""A move between the tables is a savepoint: a job is never in neither, and can always die."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from alkstore_django import sweeps, turns
from alkstore_django.failures import of
from alkstore_django.models import Attempt, DeadJob, Job
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, change, columns, where

pytestmark = pytest.mark.django_db


def fail(queue: Queue, job_id: int) -> None:
    job = queue.claim_one("w")
    assert job is not None
    assert queue.fail(job, "no")


def last_retry(queue: Queue, job_id: int) -> None:
    change(job_id, max_attempts=1)
    job = queue.claim_one("w")
    assert job is not None
    assert queue.retry(job, 0, "no")


def lapse(queue: Queue, job_id: int) -> None:
    change(job_id, state="processing", worker_id="gone", claim_expires_at=at(-1), attempts=3)
    assert queue.claim_one("w") is None


def expire(queue: Queue, job_id: int) -> None:
    change(job_id, expires_at=at(-1))
    assert queue.sweep_expired() == 1


def exhaust(queue: Queue, job_id: int) -> None:
    change(job_id, attempts=3)
    assert sweeps.sweep("default", queue.name, tasks_only=False) == 1


def undecodable(queue: Queue, job_id: int) -> None:
    change(job_id, payload="not json")
    assert queue.claim_one("w") is None


def settle(queue: Queue, job_id: int) -> None:
    wish = turns.Wish(queue.name, 1, 60, tasks_only=False)
    (claim,) = turns.take("default", "w", [], [wish], 1).claims
    dead = turns.Outcome(claim, turns.Verdict.DEAD, failure=of(ValueError, "no"))
    assert turns.take("default", "w", [dead], [], 0).lost == []


WAYS = [fail, last_retry, lapse, expire, exhaust, undecodable, settle]
every_way = pytest.mark.parametrize("die", WAYS, ids=lambda way: way.__name__)


@every_way
def test_a_job_can_die(queue: Queue, die: Callable[[Queue, int], None]) -> None:
    job_id = queue.enqueue("mine")
    die(queue, job_id)
    assert where(job_id) == "dead"


@every_way
def test_even_where_its_id_is_taken(queue: Queue, die: Callable[[Queue, int], None], caplog: Any) -> None:
    job_id = factories.dead(queue.enqueue("mine"), queue.name, '"older"', last_error="kept")
    highest = factories.run(job_id + 1_000_000)
    die(queue, job_id)
    assert where(job_id) == "dead"
    assert columns(job_id, "payload", "last_error", model=DeadJob) == ('"older"', "kept")
    (new_id,) = DeadJob.objects.filter(queue=queue.name).exclude(pk=job_id).values_list("id", flat=True)
    assert new_id > highest
    assert queue.enqueue("later") > new_id
    assert f"Job id={job_id} is now id={new_id}" in caplog.text
    links = Attempt.objects.filter(kind="renumbered").values_list("job_id", "other_id")
    assert set(links) == {(job_id, new_id), (new_id, job_id)}


@every_way
def test_what_killed_it_is_told_under_its_new_id(queue: Queue, die: Callable[[Queue, int], None]) -> None:
    job_id = factories.dead(queue.enqueue("mine"), queue.name)
    die(queue, job_id)
    new_id = DeadJob.objects.filter(queue=queue.name).latest("id").pk
    told = Attempt.objects.of_job(new_id).exclude(kind="renumbered")
    assert [row.error_class != "" for row in told][-1:] == [True]


def test_many_at_once_of_which_some_are_taken(queue: Queue) -> None:
    ids = queue.enqueue_many(range(20), expires=0)
    for job_id in ids[3::7]:
        factories.dead(job_id, "another")
    assert queue.sweep_expired() == 20
    assert not Job.objects.filter(queue=queue.name).exists()
    assert sorted(DeadJob.objects.filter(queue=queue.name).values_list("payload", flat=True)) == sorted(
        str(number) for number in range(20)
    )
    assert DeadJob.objects.filter(queue="another").count() == 3


def test_a_move_in_a_transaction_of_the_caller_leaves_it_usable(queue: Queue) -> None:
    with transaction.atomic():
        job_id = factories.dead(queue.enqueue("mine"), "another")
        fail(queue, job_id)
        User = factories.Job  # any table: the transaction goes on
        assert User.objects.filter(queue=queue.name).count() == 0
        later = queue.enqueue("later")
    assert where(later) == "live"


def test_a_dead_letter_keeps_what_it_was(queue: Queue) -> None:
    job_id = queue.enqueue("mine", priority=3, run_at=1_000, max_attempts=5)
    kept = ("queue", "payload", "priority", "run_at", "max_attempts", "created_at")
    before = columns(job_id, *kept)
    fail(queue, job_id)
    assert columns(job_id, *kept, model=DeadJob) == before
