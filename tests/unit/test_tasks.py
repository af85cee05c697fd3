"""What ``@task`` takes and refuses, when the module is imported."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from alkstore_django.backoff import Backoff
from alkstore_django.compat import InvalidTask
from alkstore_django.conf import Defaults
from alkstore_django.exceptions import Discard
from alkstore_django.tasks import AlkTask, option, stored_name, task


def a_function(value: int) -> int:
    return value


def takes_context(context: Any, value: int) -> int:
    return value


async def a_coroutine() -> None: ...


@task
def declared(value: int) -> int:
    return value


class Holder:
    @staticmethod
    def method() -> None: ...


def test_the_defaults() -> None:
    made = task(a_function)
    assert (made.priority, made.queue_name, made.backend, made.run_after) == (0, "default", "default", None)
    assert (made.max_attempts, made.backoff, made.store_result) == (3, Backoff(), True)
    assert (made.retry_on, made.no_retry) == ((Exception,), ())
    assert (made.visibility_timeout, made.expires, made.result_ttl) == (None, None, None)
    assert stored_name(made) == made.module_path == f"{__name__}.a_function"


def test_the_decorator_may_have_brackets_or_not() -> None:
    assert task(a_function) == task()(a_function)
    assert task(a_function).call(3) == 3


def test_durations_may_be_timedeltas() -> None:
    made = task(
        visibility_timeout=timedelta(minutes=1),
        expires=timedelta(hours=1),
        result_ttl=timedelta(days=1),
        backoff=timedelta(seconds=5),
    )(a_function)
    assert (made.visibility_timeout, made.expires, made.result_ttl) == (60, 3600, 86_400)
    assert made.backoff == Backoff(base=5)


def test_exceptions_may_be_one_or_several() -> None:
    made = task(retry_on=[KeyError, OSError], no_retry=ValueError)(a_function)
    assert (made.retry_on, made.no_retry) == ((KeyError, OSError), (ValueError,))
    assert hash(made) == hash(made.using())


def test_coroutines_and_context() -> None:
    task(a_coroutine)
    assert task(takes_context=True)(takes_context).takes_context
    with pytest.raises(InvalidTask, match="first argument of 'context'"):
        task(takes_context=True)(a_function)


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 101},
        {"priority": -101},
        {"priority": 1.5},
        {"queue_name": ""},
        {"queue_name": "mail "},
        {"queue_name": "a\x00b"},
        {"queue_name": "x" * 192},
    ],
    ids=str,
)
def test_what_django_refuses_is_an_invalid_task(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidTask):
        task(**options)(a_function)
    with pytest.raises(InvalidTask):
        task(a_function).using(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": 2**40},
        {"max_attempts": 1.5},
        {"expires": -1},
        {"expires": float("nan")},
        {"expires": 10**30},
    ],
    ids=str,
)
def test_values_of_ours_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        task(**options)(a_function)
    with pytest.raises(ValueError, match=next(iter(options))):
        task(a_function).using(**options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_attempts": True}, TypeError),
        ({"max_attempts": None}, TypeError),
        ({"max_attempts": "3"}, TypeError),
        ({"visibility_timeout": 0}, ValueError),
        ({"visibility_timeout": True}, TypeError),
        ({"result_ttl": 0}, ValueError),
        ({"result_ttl": "7 days"}, TypeError),
        ({"expires": "1"}, TypeError),
        ({"backoff": -1}, ValueError),
        ({"backoff": "fast"}, TypeError),
        ({"retry_on": "ValueError"}, TypeError),
        ({"retry_on": [ValueError, 1]}, TypeError),
        ({"no_retry": int}, TypeError),
        ({"no_retry": ValueError()}, TypeError),
        ({"name": ""}, ValueError),
        ({"name": "a\nb"}, ValueError),
        ({"name": " a"}, ValueError),
        ({"name": 1}, TypeError),
        ({"queue": "mail"}, TypeError),
        ({"retries": 1}, TypeError),
        ({"store_result": "no"}, TypeError),
    ],
    ids=str,
)
def test_other_values_that_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        task(**options)(a_function)


def test_only_functions_of_a_module_have_a_path() -> None:
    def nested() -> None: ...

    for function in (nested, Holder.method, lambda: 1, print, Holder):
        with pytest.raises(InvalidTask):
            task(function)


def test_a_copy_keeps_what_it_is_not_told() -> None:
    made = task(max_attempts=5, expires=60, priority=1, name="copied")(a_function)
    copy = made.using(priority=-5, queue_name="mail", max_attempts=7)
    assert (copy.priority, copy.queue_name, copy.max_attempts, copy.expires) == (-5, "mail", 7, 60)
    assert (made.priority, made.queue_name, made.max_attempts) == (1, "default", 5)
    assert (copy.func, copy.task_name, type(copy)) == (made.func, "copied", AlkTask)
    assert made.using() == made
    assert made.using(priority=0).priority == 0


def test_run_after() -> None:
    made = task(a_function)
    before = timezone.now()
    assert before <= made.using(run_after=timedelta(0)).run_after <= timezone.now()
    moment = timezone.now() + timedelta(days=1)
    assert made.using(run_after=moment).run_after == moment
    with pytest.raises(InvalidTask, match="run_after must be an aware datetime"):
        made.using(run_after=datetime(2030, 1, 1))
    with pytest.raises(TypeError, match="priorty"):
        made.using(priorty=1)


def test_options_fall_back_to_the_settings() -> None:
    made = task(a_function)
    assert option(made, "visibility_timeout") == Defaults.VISIBILITY_TIMEOUT
    assert option(made, "result_ttl") == Defaults.RESULT_TTL
    assert option(made, "expires") is None
    with override_settings(ALKSTORE={"VISIBILITY_TIMEOUT": 5, "RESULT_TTL": None}):
        assert (option(made, "visibility_timeout"), option(made, "result_ttl")) == (5, None)
    assert option(task(visibility_timeout=9)(a_function), "visibility_timeout") == 9


def test_reasons_of_exceptions() -> None:
    assert str(Discard()) == "the task was discarded by its own code"
    assert str(Discard("no such order")) == "no such order"


def test_pickling_where_django_pickles_tasks() -> None:
    if not hasattr(declared, "_reconstruct"):
        pytest.skip("tasks cannot be pickled before Django 6.1")
    copy = declared.using(priority=3, max_attempts=9)
    assert pickle.loads(pickle.dumps(copy)) == copy  # noqa: S301 - made here


def test_a_coroutine_cannot_be_atomic() -> None:
    with pytest.raises(ValueError, match="is a coroutine function and cannot be atomic"):
        task(atomic=True)(a_coroutine)


@pytest.mark.parametrize("value", [None, 1, b"default"])
def test_atomic_is_a_flag_or_an_alias(value: Any) -> None:
    with pytest.raises(TypeError, match="atomic must be True, False or the alias of a database"):
        task(atomic=value)(a_function)
