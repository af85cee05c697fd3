"""Until when a job holds the key of a unique task."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from alkstore_django.compat import TaskResultStatus
from alkstore_django.envelopes import unseal
from alkstore_django.keys import kept
from alkstore_django.models import Job, UniqueKey
from alkstore_django.queues import Queue
from alkstore_django.sql import tables
from alkstore_django.testing import travel
from alkstore_django.turns import Verdict
from tests import factories
from tests.contract.stages import claim, failure, settle
from tests.contract.uniques import each_lasting, is_free, unique
from tests.factories import ask, at, change, lapse

pytestmark = pytest.mark.django_db


@each_lasting
def test_while_it_waits(lasting: Any) -> None:
    task = unique(unique_for=lasting)
    for result in (task.enqueue(1), task.using(run_after=timedelta(days=1)).enqueue(2)):
        assert not is_free(task, result)


@pytest.mark.parametrize(("lasting", "free"), [("finished", False), ("queued", True), (600, False)])
def test_while_it_runs(lasting: Any, free: bool) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    claim(result)
    assert is_free(task, result) == free
    assert free or task.enqueue(1).status == TaskResultStatus.RUNNING


@each_lasting
def test_while_it_waits_for_a_retry(lasting: Any) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    settle(claim(result), Verdict.RETRY, failure=failure(), delay=60)
    assert not is_free(task, result)
    assert len(task.enqueue(1).errors) == 1


@each_lasting
@pytest.mark.parametrize("verdict", [Verdict.GIVE_BACK, Verdict.INTERRUPT], ids=lambda each: each.name)
def test_when_it_was_put_back(lasting: Any, verdict: Verdict) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    settle(claim(result), verdict)
    assert not is_free(task, result)


def test_put_back_after_another_has_taken_the_key_both_wait() -> None:
    task = unique(unique_for="queued")
    first = task.enqueue(1)
    held = claim(first)
    second = task.enqueue(1)
    settle(held, Verdict.RETRY, failure=failure())
    assert second.created
    assert not is_free(task, second)
    claim(first)
    claim(second)
    assert is_free(task, second)


@pytest.mark.parametrize(("lasting", "free"), [("finished", True), ("queued", True), (600, False)])
def test_when_it_has_succeeded(lasting: Any, free: bool) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    settle(claim(result), Verdict.ACK, value="7")
    assert is_free(task, result) == free
    if not free:
        found = task.enqueue(1)
        assert (found.status, found.return_value) == (TaskResultStatus.SUCCESSFUL, 7)


@each_lasting
@pytest.mark.parametrize("verdict", [Verdict.DEAD, Verdict.DISCARD], ids=lambda each: each.name)
def test_when_it_has_failed(lasting: Any, verdict: Verdict) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    settle(claim(result), verdict, failure=failure())
    assert is_free(task, result)


@each_lasting
@pytest.mark.parametrize("running", [False, True])
def test_when_it_was_cancelled(lasting: Any, running: bool) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    if running:
        claim(result)
    assert result.cancel()
    assert is_free(task, result)


@each_lasting
@pytest.mark.parametrize("swept", [False, True])
def test_when_it_has_expired(lasting: Any, swept: bool) -> None:
    """Nobody can claim it any more, whether a worker has buried it by now or not."""
    task = unique(unique_for=lasting, expires=0)
    result = task.enqueue(1)
    if swept:
        assert Queue(task.queue_name).sweep_expired() == 1
    assert is_free(task, result)


@pytest.mark.parametrize(
    ("lasting", "attempts", "free"),
    [("finished", 2, False), ("finished", 1, True), ("queued", 2, True), ("queued", 1, True)]
    + [(600, 2, False), (600, 1, True)],
)
def test_when_its_worker_vanished(lasting: Any, attempts: int, free: bool) -> None:
    """Without an attempt left it is as good as dead, whether a worker has buried it by now or not."""
    task = unique(unique_for=lasting, max_attempts=attempts)
    result = task.enqueue(1)
    lapse(claim(result).id)
    assert is_free(task, result) == free


@each_lasting
@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM {tables.LIVE} WHERE id = %s",  # how another program acks, and how it cancels
        f"UPDATE {tables.LIVE} SET attempts = max_attempts WHERE id = %s",
    ],
)
def test_when_another_program_has_ended_it(lasting: Any, statement: str) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    ask(statement, [int(result.id)])
    assert is_free(task, result)


@each_lasting
def test_when_another_program_has_buried_it(lasting: Any) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    job = Job.objects.get(pk=result.id)
    ask(f"DELETE FROM {tables.LIVE} WHERE id = %s", [job.pk])
    factories.dead(job.pk, job.queue, job.payload)
    assert is_free(task, result)


@each_lasting
def test_a_job_of_somebody_else_s_under_the_same_id_holds_nothing(lasting: Any) -> None:
    task = unique(unique_for=lasting)
    result, other = task.enqueue(1), task.enqueue(2)
    payload = Job.objects.get(pk=other.id).payload
    for stolen in ("{}", "no JSON", '{"__honker_task__":{"task":"a"}}', payload):
        change(int(result.id), payload=stolen)
        found = task.enqueue(1)
        assert found.created and found.id != result.id
        result = found
    settle(claim(task.enqueue(3)), Verdict.ACK)
    factories.run(10**9, payload=payload)
    UniqueKey.objects.update(job_id=10**9, holds_until=at(60))
    assert task.enqueue(1).created


def test_the_time_is_over_although_it_runs() -> None:
    def scenario() -> None:
        task = unique(unique_for=timedelta(seconds=60))
        waiting, running = task.enqueue(task.queue_name), task.enqueue(task.queue_name, 2)
        change(int(running.id), state="processing", worker_id="w", claim_expires_at=at(60), attempts=1)
        UniqueKey.objects.update(holds_until=at(1))
        assert not is_free(task, waiting) and not is_free(task, running)
        UniqueKey.objects.update(holds_until=at(0))
        assert is_free(task, waiting) and is_free(task, running)

    factories.within_a_second(scenario)


def test_time_can_pass_in_tests() -> None:
    task = unique(unique_for=600)
    result = task.enqueue(1)
    settle(claim(result), Verdict.ACK)
    travel(590)
    assert not is_free(task, result)
    travel(10)
    assert is_free(task, result)


def test_the_time_counts_from_the_enqueue() -> None:
    def scenario() -> None:
        task = unique(factories.queue().name, unique_for=60, run_after=timedelta(hours=1))
        result = task.enqueue()
        assert not task.enqueue().created
        key = UniqueKey.objects.get(job_id=result.id)
        assert key.holds_until == factories.now() + 60

    factories.within_a_second(scenario)


def test_the_record_of_a_finished_job_is_kept_while_its_key_lasts() -> None:
    for lasting, ttl in ((600, 60), (30, 30), ("finished", 5), ("queued", 5)):
        result = unique(unique_for=lasting).enqueue(str(lasting))
        envelope = unseal(Job.objects.get(pk=result.id).payload)
        assert kept(envelope, 5) == {600: 600, 30: 30}.get(lasting, 5), ttl
        assert kept(envelope, None) is None


def test_until_when_is_said_by_the_holder() -> None:
    task = unique("k", unique_for="queued")
    first = task.enqueue()
    claim(first)
    second = task.using(unique_for="finished").enqueue()
    assert second.created
    claim(second)
    assert not task.enqueue().created
