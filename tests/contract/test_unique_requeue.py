"""Dead letters of unique tasks: they come back with their key, or not while another job has it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alkstore_django import queues, sweeps
from alkstore_django.models import DeadJob, Job, UniqueKey
from alkstore_django.queues import Queue
from alkstore_django.sql import tables
from alkstore_django.turns import Verdict
from tests import factories
from tests.contract.stages import claim, enqueue, failure, settle
from tests.contract.uniques import each_lasting, is_free, unique
from tests.factories import at, change, where

pytestmark = pytest.mark.django_db


def bury(result: Any) -> int:
    settle(claim(result), Verdict.DEAD, failure=failure())
    return int(result.id)


@each_lasting
@pytest.mark.parametrize("swept", [False, True])
def test_it_takes_its_key_again(lasting: Any, swept: bool) -> None:
    task = unique(unique_for=lasting)
    result = task.enqueue(1)
    job_id = bury(result)
    if swept:
        UniqueKey.objects.update(holds_until=None)  # its time may not be over
        assert sweeps.sweep_keys("default") == ("", 1)
    assert queues.requeue([job_id]) == {job_id: job_id}
    assert not is_free(task, result)
    claim(result)
    assert is_free(task, result) == (lasting == "queued")


@each_lasting
def test_it_stays_dead_while_another_has_the_key(lasting: Any, caplog: Any) -> None:
    task = unique(unique_for=lasting)
    job_id = bury(task.enqueue(1))
    second = task.enqueue(1)
    assert second.created
    assert queues.requeue([job_id]) == {}
    assert Queue(task.queue_name).requeue([job_id]) == 0
    assert where(job_id) == "dead"
    assert f"Dead letter id={job_id} stays one: another job has its key." in caplog.text
    assert not is_free(task, second)
    assert second.cancel()
    assert queues.requeue([job_id]) == {job_id: job_id}
    assert Job.objects.count() == 1


def test_of_two_with_one_key_one_comes_back() -> None:
    task = unique()
    first, second = bury(task.enqueue(1)), bury(task.enqueue(1))
    other, plain = bury(task.enqueue(2)), bury(enqueue(3))
    assert queues.requeue([second, first, plain, other]).keys() == {first, other, plain}
    assert where(second) == "dead"


def test_under_another_id() -> None:
    task = unique()
    result = task.enqueue(1)
    job_id = bury(result)
    factories.live("another", id=job_id)
    new_id = queues.requeue([job_id])[job_id]
    assert new_id != job_id
    assert not is_free(task, task.get_result(str(new_id)))


def test_when_its_time_is_over_it_needs_no_key() -> None:
    task = unique(unique_for=60)
    job_id = bury(task.enqueue(1))
    second = task.enqueue(1)
    change(job_id, model=DeadJob, created_at=at(-60))
    assert queues.requeue([job_id]) == {job_id: job_id}
    assert not is_free(task, second)


def test_its_time_goes_on_from_the_enqueue() -> None:
    def scenario() -> None:
        task = unique(factories.queue().name, unique_for=60)
        job_id = bury(task.enqueue(1))
        change(job_id, model=DeadJob, created_at=at(-20))
        assert queues.requeue([job_id]) == {job_id: job_id}
        assert UniqueKey.objects.get(job_id=job_id).holds_until == factories.now() + 40

    factories.within_a_second(scenario)


def test_other_dead_letters_pay_nothing() -> None:
    job_id = bury(enqueue(1))
    foreign = factories.dead(10**6, payload="no JSON")
    with CaptureQueriesContext(connection) as captured:
        assert queues.requeue([job_id, foreign]) == {job_id: job_id, foreign: foreign}
    assert [query["sql"] for query in captured if tables.UNIQUE_KEYS in query["sql"]] == []


def test_the_admin_tells_how_many_stayed(admin_client: Client) -> None:
    task = unique()
    stays, comes = bury(task.enqueue(1)), bury(task.enqueue(2))
    task.enqueue(1)
    url = reverse("admin:alkstore_django_deadjob_requeue")
    answer = admin_client.post(url, {"ids": f"{stays},{comes},{10**9}"}, follow=True)
    assert [str(message) for message in answer.context["messages"]] == [
        "1 dead letter was requeued.",
        "1 dead letter was not there any more.",
        "1 dead letter stays: another job has its key.",
    ]
