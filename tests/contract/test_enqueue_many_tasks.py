"""``Task.enqueue_many``: many jobs of one task, all or none."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from alkstore_django.compat import NATIVE, task_enqueued
from alkstore_django.envelopes import unseal
from alkstore_django.models import Job
from tests.app import tasks

pytestmark = pytest.mark.django_db


def test_results_come_in_the_order_of_the_calls() -> None:
    results = tasks.add.enqueue_many([(1, 2), [3, 4], {"a": 5, "b": 6}])
    calls = [(result.args, result.kwargs) for result in results]
    assert calls == [([1, 2], {}), ([3, 4], {}), ([], {"a": 5, "b": 6})]
    for result in results:
        envelope = unseal(Job.objects.get(pk=result.id).payload)
        assert envelope.task == "tests.app.tasks.add"
        assert (envelope.args, envelope.kwargs) == (result.args, result.kwargs)


def test_options_are_those_of_the_task() -> None:
    task = tasks.add.using(priority=7, queue_name="bulk", max_attempts=9, expires=60)
    (result,) = task.enqueue_many([(1, 2)])
    job = Job.objects.get(pk=result.id)
    assert (job.priority, job.queue, job.max_attempts) == (7, "bulk", 9)
    assert job.expires_at is not None
    assert result.task == task


def test_few_statements() -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        results = tasks.nothing.enqueue_many(() for _ in range(2_500))
    assert len({result.id for result in results}) == Job.objects.count() == 2_500
    inserts = [query for query in queries if query["sql"].startswith("INSERT")]
    assert len(inserts) == 3


def test_each_is_signalled() -> None:
    heard: list[Any] = []

    def hear(task_result: Any, **kwargs: Any) -> None:
        heard.append(task_result.id)

    task_enqueued.connect(hear)
    try:
        results = tasks.nothing.enqueue_many([(), ()])
    finally:
        task_enqueued.disconnect(hear)
    assert heard == [result.id for result in results]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (7, r"calls\[1\] must be a tuple of positional or a dict of keyword arguments, not 7"),
        ("ab", r"calls\[1\] must be a tuple"),
        ((object(),), r"calls\[1\]\.args\[0\]"),
        ({"a": {1, 2}}, r"calls\[1\]\.kwargs\['a'\]"),
        ({1: 2}, r"calls\[1\] has the keyword 1: names of arguments are strings"),
        ({b"a": 1}, r"calls\[1\] has the keyword b'a'"),
        ({None: 1}, r"calls\[1\] has the keyword None"),
    ],
    ids=["number", "text", "argument", "keyword", "number as keyword", "bytes as keyword", "no keyword"],
)
def test_bad_calls_are_named_and_nothing_is_written(call: Any, message: str) -> None:
    with transaction.atomic():
        with pytest.raises(TypeError, match=message):
            tasks.add.enqueue_many([(1, 2), call])
        assert not Job.objects.exists()


def test_no_calls() -> None:
    assert tasks.nothing.enqueue_many([]) == []


def test_another_backend_takes_them_one_by_one() -> None:
    package = "django.tasks" if NATIVE else "django_tasks"
    with override_settings(TASKS={"default": {"BACKEND": f"{package}.backends.immediate.ImmediateBackend"}}):
        results = tasks.add.enqueue_many([(1, 2), {"a": 3, "b": 4}])
    assert [result.return_value for result in results] == [3, 7]
