"""``assert_enqueued`` and ``assert_not_enqueued``: what they find, and what they say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from django.utils import timezone

from alkstore_django.compat import NATIVE
from alkstore_django.queues import Queue
from alkstore_django.testing import assert_enqueued, assert_not_enqueued, drain, enqueued
from tests import factories
from tests.contract import tasks
from tests.factories import at

pytestmark = pytest.mark.django_db


def message(**conditions: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        assert_enqueued(tasks.send, **conditions)
    return str(raised.value)


def test_it_answers_with_the_results() -> None:
    first, second = tasks.send.enqueue(1), tasks.send.enqueue(2)
    tasks.other.enqueue(1)
    assert [result.id for result in assert_enqueued(tasks.send)] == [first.id, second.id]
    assert [result.args for result in assert_enqueued(tasks.send, args=[2])] == [[2]]
    assert len(assert_enqueued()) == len(enqueued()) == 3
    assert [result.id for result in enqueued(tasks.send)] == [first.id, second.id]
    assert assert_enqueued("tests.contract.tasks.other")


def test_a_name_of_its_own() -> None:
    tasks.receipt.enqueue(7)
    assert assert_enqueued(tasks.receipt, queue="mail", priority=5)
    assert assert_enqueued("contract.receipt")


@pytest.mark.parametrize(
    ("conditions", "is_there"),
    [
        ({}, True),
        ({"args": []}, True),
        ({"args": (1,)}, True),
        ({"args": [1, [2, {"a": (3,)}]]}, True),
        ({"args": [ANY, [2, ANY]]}, True),
        ({"args": [2]}, False),
        ({"args": [1, [2]]}, False),
        ({"args": [1, ANY, ANY]}, False),
        ({"kwargs": {}}, True),
        ({"kwargs": {"x": "y"}}, True),
        ({"kwargs": {"x": ANY, "z": None}}, True),
        ({"kwargs": {"x": "z"}}, False),
        ({"kwargs": {"missing": ANY}}, False),
        ({"queue": "default", "priority": 3}, True),
        ({"queue": "mail"}, False),
        ({"priority": 0}, False),
        ({"run_after": timedelta(hours=1)}, True),
        ({"run_after": 3600}, True),
        ({"run_after": timedelta(hours=2)}, False),
        ({"count": 1}, True),
        ({"count": 2}, False),
        ({"count": 0}, False),
        ({"args": [9], "count": 0}, True),
    ],
    ids=str,
)
def test_conditions(conditions: dict[str, Any], is_there: bool) -> None:
    task = tasks.anything.using(priority=3, run_after=timedelta(hours=1))
    task.enqueue(1, [2, {"a": [3]}], x="y", z=None)
    if is_there:
        assert_enqueued(tasks.anything, **conditions)
    else:
        with pytest.raises(AssertionError):
            assert_enqueued(tasks.anything, **conditions)
    if "count" not in conditions:
        if is_there:
            with pytest.raises(AssertionError):
                assert_not_enqueued(tasks.anything, **conditions)
        else:
            assert_not_enqueued(tasks.anything, **conditions)


def test_a_duration_is_from_the_enqueue_or_from_now() -> None:
    job_id = int(tasks.send.using(run_after=timedelta(minutes=5)).enqueue(1).id)
    factories.change(job_id, created_at=at(-60), run_at=at(240))  # a slow test, a minute later
    assert assert_enqueued(tasks.send, run_after=timedelta(minutes=5))
    assert assert_enqueued(tasks.send, run_after=240)
    with pytest.raises(AssertionError, match=r"run_after is \+\d+ s away"):
        assert_enqueued(tasks.send, run_after=200)


def test_a_moment() -> None:
    moment = timezone.now() + timedelta(days=1)
    tasks.send.using(run_after=moment).enqueue(1)
    assert assert_enqueued(tasks.send, run_after=moment)
    assert_not_enqueued(tasks.send, run_after=moment + timedelta(seconds=10))


def test_what_runs_is_there_and_what_has_ended_is_not() -> None:
    tasks.send.enqueue(1)
    job = Queue("default").claim_one("w")
    assert job is not None
    assert assert_enqueued(tasks.send)
    assert Queue("default").release(job)
    drain()
    assert_not_enqueued(tasks.send)
    assert "No task waits." in message()


def test_the_message_lists_what_there_is_and_why_not() -> None:
    tasks.send.enqueue(8)
    tasks.send.using(run_after=timedelta(hours=1), queue_name="mail", priority=2).enqueue(7, colour="red")
    tasks.other.enqueue("x")
    Queue("raw").enqueue({"no": "task"})
    factories.live("raw", "not JSON")
    told = message(args=[7], kwargs={"colour": "blue"})
    assert told.startswith(
        "No job of tests.contract.tasks.send with args=[7], kwargs={'colour': 'blue'} enqueued. There are:\n"
    )
    lines = told.splitlines()[1:]
    assert lines[0] == "  tests.contract.tasks.send(8)  queue=default priority=0 due  (args begin with [8])"
    assert lines[1].startswith("  tests.contract.tasks.send(7, colour='red')  queue=mail priority=2 due in 3")
    assert lines[1].endswith("(colour is 'red')")
    assert lines[2] == "  tests.contract.tasks.other('x')  queue=default priority=0 due  (another task)"
    assert len(lines) == 3


def test_the_message_about_a_number() -> None:
    assert "No job of tests.contract.tasks.send enqueued, and not 1." in message(count=1)
    tasks.send.enqueue(1)
    assert "1 job of tests.contract.tasks.send enqueued, and not 3." in message(count=3)
    tasks.send.enqueue(2)
    assert "2 jobs of tests.contract.tasks.send enqueued, and not 1." in message(count=1)


def test_the_message_of_what_should_not_be_there() -> None:
    tasks.send.enqueue(1)
    with pytest.raises(AssertionError, match=r"(?s)send is enqueued. There are:.*send\(1\)"):
        assert_not_enqueued(tasks.send)


def test_long_lists_are_cut() -> None:
    tasks.send.enqueue_many([(number,) for number in range(25)])
    assert message(args=["no"]).endswith("  and 5 more")


@pytest.mark.django_db(databases=["default", "other"])
def test_another_database(settings: Any) -> None:
    backend = {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "QUEUES": []}
    settings.TASKS = {"default": backend, "second": {**backend, "OPTIONS": {"DATABASE": "other"}}}
    there = tasks.send.using(backend="second")
    there.enqueue(1)
    assert assert_enqueued(there)
    assert assert_enqueued(using="other")
    assert_not_enqueued(tasks.send)
    assert_not_enqueued(using="default")


def test_what_can_be_no_task(settings: Any) -> None:
    for bad in (5, tasks.send.func):
        with pytest.raises(TypeError, match="task must be a task or its stored name"):
            assert_enqueued(bad)
    family = "django.tasks" if NATIVE else "django_tasks"
    dummy = {"BACKEND": f"{family}.backends.dummy.DummyBackend"}
    settings.TASKS = {**settings.TASKS, "dummy": dummy}
    with pytest.raises(TypeError, match="is a task of another backend"):
        assert_enqueued(tasks.send.using(backend="dummy"))
