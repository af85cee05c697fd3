"""Unique tasks: what is the same job, whose key is held."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from alkstore_django.compat import TaskResultStatus
from alkstore_django.models import Job
from tests.contract import tasks
from tests.contract.uniques import unique

pytestmark = pytest.mark.django_db


def test_the_same_arguments_are_one_job() -> None:
    task = unique()
    first, again, other = task.enqueue(1), task.enqueue(1), task.enqueue(2)
    assert (first.created, again.created, other.created) == (True, False, True)
    assert again == first == task.get_result(first.id)
    assert again.status == TaskResultStatus.READY
    assert Job.objects.count() == 2


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (([1], {}), ([], {"to": 1})),
        (([1], {"a": 1, "b": 2}), ([1], {"b": 2, "a": 1})),
        (([{"a": 1, "b": [2]}], {}), ([{"b": [2], "a": 1}], {})),
        (([(1, 2)], {}), ([[1, 2]], {})),
        (([b"text"], {}), (["text"], {})),
    ],
    ids=str,
)
def test_it_does_not_matter_how_arguments_are_passed(one: Any, another: Any) -> None:
    task = unique()
    task.enqueue(*one[0], **one[1])
    assert not task.enqueue(*another[0], **another[1]).created


@pytest.mark.parametrize(
    ("one", "another"),
    [([1], [2]), ([1], ["1"]), ([1], [1.0]), ([1], [True]), ([None], []), ([[]], [{}]), ([0], [False])],
    ids=str,
)
def test_other_arguments_are_another_job(one: Any, another: Any) -> None:
    task = unique()
    task.enqueue(*one)
    assert task.enqueue(*another).created


def test_a_key_stands_for_whatever_arguments() -> None:
    task = unique("report")
    first = task.enqueue(1)
    again = task.enqueue(2, more=3)
    assert (again.created, again.id, again.args, again.kwargs) == (False, first.id, [1], {})
    assert task.using(unique="another").enqueue(2).created
    assert task.using(unique=True).enqueue(1).created
    assert task.using(unique=False).enqueue(1).created


@pytest.mark.parametrize("key", ["x" * 100_000, "\ud800", "a\x00b", " ", "é", "É", "e\u0301"], ids=ascii)
def test_any_text_is_a_key(key: str) -> None:
    task = unique(key)
    first = task.enqueue()
    assert not task.enqueue().created
    assert task.using(unique=f"{key} ").enqueue().created
    assert first.task == task.get_result(first.id).task == task


def test_a_key_belongs_to_a_task_whatever_the_queue_and_its_options() -> None:
    task = unique("k")
    first = task.enqueue()
    elsewhere = unique("k", priority=9, run_after=timedelta(hours=1), max_attempts=1, expires=60)
    assert elsewhere.enqueue().id == first.id
    assert unique("k", tasks.other).enqueue().created
    assert unique("k", tasks.told).enqueue(1).created


def test_a_task_that_takes_its_context() -> None:
    task = unique(True, tasks.told)
    task.enqueue(1)
    assert not task.enqueue(value=1).created
    assert task.enqueue(2).created


def test_a_call_that_will_fail_has_a_key_as_well() -> None:
    task = unique(True, tasks.told)
    assert task.enqueue().created
    assert not task.enqueue().created
    assert task.enqueue(1, 2, 3).created


@pytest.mark.django_db(databases=["default", "other"])
def test_every_database_has_keys_of_its_own(settings: Any) -> None:
    backend = {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "QUEUES": []}
    settings.TASKS = {
        "default": backend,
        "second": backend,
        "elsewhere": {**backend, "OPTIONS": {"DATABASE": "other"}},
    }
    task = tasks.send.using(unique="k")
    first = task.enqueue()
    assert task.using(backend="second").enqueue().id == first.id
    assert task.using(backend="elsewhere").enqueue().created
