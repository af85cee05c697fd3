"""``enqueue_many`` of unique tasks: each call is decided as if it were enqueued by itself."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django.models import Job, Run, UniqueKey
from alkstore_django.sql import tables
from alkstore_django.turns import Verdict
from tests.contract.stages import claim, settle
from tests.contract.uniques import unique

pytestmark = pytest.mark.django_db


def created(results: list[Any]) -> list[bool]:
    return [result.created for result in results]


def ids(results: list[Any]) -> list[str]:
    return [result.id for result in results]


def live() -> list[str]:
    return [str(job_id) for job_id in Job.objects.order_by("id").values_list("pk", flat=True)]


@pytest.mark.parametrize("conflict", ["existing", "ignore"])
@pytest.mark.parametrize("lasting", ["finished", "queued", 600])
def test_the_first_call_of_a_key_makes_the_job(conflict: str, lasting: Any) -> None:
    task = unique(on_conflict=conflict, unique_for=lasting)
    before = task.enqueue(2)
    results = task.enqueue_many([(1,), (2,), {"to": 1}, (3,), (1,)])
    assert created(results) == [True, False, False, True, False]
    one, two, again, three, last = ids(results)
    assert (one, one, before.id) == (again, last, two)
    assert live() == [before.id, one, three]
    assert [result.args for result in results] == [[1], [2], [1], [3], [1]]
    assert results[2] == results[0] == task.get_result(one)


def test_an_answer_that_cannot_be_read_leaves_no_job() -> None:
    task = unique()
    before = task.enqueue(2)

    def cut(execute: Any, sql: str, *rest: Any) -> Any:
        if tables.ATTEMPTS in sql and sql.startswith("SELECT"):
            raise OperationalError("cut off")
        return execute(sql, *rest)

    with connection.execute_wrapper(cut), pytest.raises(OperationalError, match="cut off"):
        task.enqueue_many([(1,), (2,), (3,)])
    assert live() == [before.id] and UniqueKey.objects.count() == 1
    assert created(task.enqueue_many([(1,), (2,), (3,)])) == [True, False, True]


def test_one_key_for_all_calls() -> None:
    task = unique("k")
    results = task.enqueue_many([(1,), (2,), (3,)])
    assert created(results) == [True, False, False]
    assert set(ids(results)) == {*live()}
    assert [result.args for result in results] == [[1]] * 3
    assert created(task.enqueue_many([(4,), (5,)])) == [False, False]


def test_the_last_call_of_a_key_replaces_those_before() -> None:
    task = unique(on_conflict="replace")
    before, running = task.enqueue(2), task.enqueue(4)
    Job.objects.filter(pk=running.id).update(state="processing", worker_id="w", claim_expires_at=2**33)
    results = task.enqueue_many([(1,), (2,), (1,), (3,), (1,), (4,), (4,)])
    assert created(results) == [True] * 5 + [False] * 2
    assert ids(results)[5:] == [running.id] * 2
    assert {*live()} == {running.id, results[1].id, results[3].id, results[4].id}
    cancelled = Run.objects.filter(status=Run.CANCELLED).values_list("pk", flat=True)
    assert {str(job_id) for job_id in cancelled} == {before.id, results[0].id, results[2].id}


def test_done_ones_in_their_time() -> None:
    task = unique(unique_for=600)
    for number in (1, 2):
        settle(claim(task.enqueue(number)), Verdict.ACK, value=str(number * 10))
    results = task.enqueue_many([(1,), (3,), (2,)])
    assert created(results) == [False, True, False]
    assert (results[0].return_value, results[2].return_value) == (10, 20)


def test_many_at_once_are_few_statements() -> None:
    task = unique()
    with CaptureQueriesContext(connection) as captured:
        results = task.enqueue_many((number,) for number in range(2_000))
    assert len(set(ids(results))) == Job.objects.count() == UniqueKey.objects.count() == 2_000
    assert all(created(results))
    assert len(captured) < 50
    with CaptureQueriesContext(connection) as captured:
        again = task.enqueue_many((number,) for number in range(2_000))
    assert ids(again) == ids(results) and not any(created(again))
    assert len(captured) < 50


def test_all_or_none() -> None:
    task = unique()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        task.enqueue_many([(1,), (2,)])
        raise ZeroDivisionError
    with pytest.raises(TypeError, match=r"calls\[1\]\.args\[0\]"):
        task.enqueue_many([(1,), (object(),)])
    assert not Job.objects.exists() and not UniqueKey.objects.exists()
    assert task.enqueue_many([]) == []


def test_bad_arguments_are_refused_before_the_key_is_looked_at() -> None:
    task = unique("k")
    with CaptureQueriesContext(connection) as captured, pytest.raises(TypeError):
        task.enqueue(object())
    assert len(captured) == 0
