"""The result class: Django's, and a little more."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from django.utils import timezone

from alkstore_django.answers import AlkTaskResult
from alkstore_django.compat import TaskResult, TaskResultStatus
from alkstore_django.tasks import task


@task
def declared(value: int) -> int:
    return value


def answer(**changes: Any) -> AlkTaskResult:
    values: dict[str, Any] = {each.name: None for each in fields(TaskResult) if each.init}
    values |= {"task": declared, "id": "1", "status": TaskResultStatus.READY, "args": (1,), "kwargs": {}}
    return AlkTaskResult(**(values | {"backend": "default", "errors": [], "worker_ids": []} | changes))


def test_it_is_created_unless_it_says_otherwise() -> None:
    assert answer().created is True
    assert answer(created=False).created is False


def test_it_is_one_of_django_s() -> None:
    made = answer()
    assert isinstance(made, TaskResult)
    assert (made.args, made.attempts, made.is_finished) == ([1], 0, False)  # as JSON has them
    with pytest.raises(ValueError, match="not finished yet"):
        _ = made.return_value
    with pytest.raises(AttributeError):
        made.created = False  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        made.anything = 1  # type: ignore[attr-defined]


def test_results_of_one_job_are_equal_whoever_created_it() -> None:
    now = timezone.now()
    assert answer(enqueued_at=now) == answer(enqueued_at=now, created=False)
    assert answer() != answer(id="2")
    assert replace(answer(), created=False) == answer()


def test_it_can_be_pickled_where_tasks_can() -> None:
    if not hasattr(declared, "_reconstruct"):
        pytest.skip("tasks cannot be pickled before Django 6.1")
    made = answer(created=False)
    object.__setattr__(made, "_return_value", 5)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - made here
    assert (again, again.created, again._return_value) == (made, False, 5)
