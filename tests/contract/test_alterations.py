"""``using``: what it changes travels with the job, and is that of the task that runs and of its result."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from alkstore_django.backoff import Backoff
from alkstore_django.compat import NATIVE, InvalidTask
from alkstore_django.exceptions import TaskTimedOut
from alkstore_django.models import Result, Run
from alkstore_django.tasks import AlkTask
from alkstore_django.testing import assert_enqueued, drain
from tests.app import tasks, told
from tests.contract import tasks as declared
from tests.factories import columns, live

pytestmark = pytest.mark.django_db

FORWARDS = not NATIVE or hasattr(AlkTask, "_reconstruct")
"""Whether the decorator of ``django.tasks`` gives options that it does not know to our class."""

CHANGES = {
    "priority": 7,
    "queue_name": "mail",
    "max_attempts": 9,
    "expires": 600,
    "backoff": Backoff(base=1, factor=3, cap=50, jitter=0),
    "timeout": 2.5,
    "store_result": False,
    "result_ttl": 60,
    "metadata": {"trace": 5},
}


def ours(result: Any) -> Any:
    return json.loads(columns(int(result.id), "payload")[0]).get("alkstore")


def test_everything_comes_back_with_the_result() -> None:
    task = declared.send.using(**CHANGES)
    found = declared.send.get_result(task.enqueue(1).id).task
    assert found == task
    assert {name: getattr(found, name) for name in CHANGES} == CHANGES


def test_what_is_as_declared_is_not_stored() -> None:
    assert ours(declared.send.enqueue(1)) is None
    assert ours(declared.send.using(priority=3, max_attempts=4).enqueue(1)) is None
    assert ours(declared.receipt.using(backoff=Backoff(base=1), store_result=False).enqueue(1)) == {
        "expires": 600
    }


@pytest.mark.parametrize(
    ("changes", "stored"),
    [
        ({"backoff": 5}, {"backoff": [5, 2, 3600, 0.1]}),
        ({"backoff": timedelta(minutes=1)}, {"backoff": [60, 2, 3600, 0.1]}),
        ({"timeout": timedelta(seconds=3)}, {"timeout": 3.0}),
        ({"store_result": False}, {"store_result": False}),
        ({"result_ttl": timedelta(days=1)}, {"result_ttl": 86_400}),
        ({"metadata": {"a": (1,)}}, {"metadata": {"a": [1]}}),
        ({"metadata": {}}, None),
    ],
    ids=str,
)
def test_what_is_stored(changes: Any, stored: Any) -> None:
    assert ours(declared.send.using(**changes).enqueue(1)) == stored


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"backoff": "fast"}, TypeError),
        ({"backoff": -1}, ValueError),
        ({"timeout": 0}, ValueError),
        ({"timeout": "5"}, TypeError),
        ({"store_result": 1}, TypeError),
        ({"result_ttl": 0}, ValueError),
        ({"metadata": [1]}, TypeError),
        ({"metadata": {"_own": 1}}, ValueError),
        ({"metadata": {"a": object()}}, TypeError),
        ({"metadata": {"a": "x" * 20_000}}, ValueError),
        ({"run_after": "soon"}, InvalidTask),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_refused(changes: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        declared.send.using(**changes)


def test_the_run_goes_by_it() -> None:
    tasks.fail.using(backoff=Backoff(base=100, jitter=0), max_attempts=2).enqueue()
    assert [ran.ended for ran in drain()] == ["retried"]
    assert_enqueued(tasks.fail, run_after=100)
    told.too_long.using(timeout=0.2).enqueue()
    (ran,) = drain()
    assert isinstance(ran.error, TaskTimedOut)
    assert "0.2 s" in str(ran.error)


def test_the_result_is_kept_as_it_says() -> None:
    result = tasks.add.using(store_result=False, result_ttl=60).enqueue(1, 2)
    drain()
    assert not Result.objects.filter(pk=result.id).exists()
    run = Run.objects.get(pk=result.id)
    assert run.expires_at - run.finished_at == 60


@pytest.mark.parametrize(
    "extra",
    [
        {"timeout": "x"},
        {"timeout": -1},
        {"backoff": 5},
        {"backoff": [1, 2, 3, 4, 5]},
        {"backoff": ["a"]},
        {"store_result": 0},
        {"result_ttl": None},
        {"metadata": [1]},
        {"metadata": {"_x": 1}},
        [],
        "text",
    ],
    ids=str,
)
def test_what_others_may_have_stored_is_not_looked_at(extra: Any) -> None:
    envelope = {"task": "tests.app.tasks.add", "args": [1, 2], "kwargs": {}}
    live("default", json.dumps({"__honker_task__": envelope, "alkstore": extra}, separators=(",", ":")))
    (ran,) = drain()
    assert ran.value == 3
    assert ran.result.task == tasks.add


def test_metadata_does_not_hash_and_counts() -> None:
    task = declared.send.using(metadata={"a": [1]})
    assert hash(task) == hash(declared.send)
    assert task != declared.send
    assert task == declared.send.using(metadata={"a": (1,)})


def test_djangos_own_decorator_takes_our_options() -> None:
    """From Django 6.1 on, and that of the backport; Django 6.0 takes no options of others."""
    if not FORWARDS:
        with pytest.raises(TypeError, match="max_attempts"):
            declared.plain_task(max_attempts=7)
        return
    assert isinstance(with_our_options, AlkTask)
    assert (with_our_options.max_attempts, with_our_options.timeout) == (7, 5.0)
    assert with_our_options.using(max_attempts=2).max_attempts == 2
    with_our_options.enqueue()
    assert_enqueued(with_our_options)


if FORWARDS:

    @declared.plain_task(max_attempts=7, timeout=5, backoff=Backoff(base=1), metadata={"a": 1})
    def with_our_options() -> None: ...
