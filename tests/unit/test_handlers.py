"""What ``@handler`` takes and refuses, when the module is imported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from alkstore_django import callables, envelopes, registry
from alkstore_django.backoff import Backoff
from alkstore_django.handlers import Handler
from alkstore_django.outbox import outbox
from alkstore_django.queues import handler
from alkstore_django.sql import tables
from alkstore_django.tasks import option


def a_function(payload: Any) -> Any:
    return payload


def another(payload: Any) -> None: ...


async def a_coroutine(payload: Any) -> Any:
    return payload


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Forget what a test declares."""
    before = dict(registry._handlers)
    try:
        yield
    finally:
        registry._handlers.clear()
        registry._handlers.update(before)
        registry._changes += 1


def declared(queue: str = "q", function: Any = a_function, **options: Any) -> Handler:
    assert handler(queue, **options)(function) is function
    found = registry.handler(queue)
    assert isinstance(found, Handler)
    return found


def test_defaults_are_those_of_tasks_but_for_the_result() -> None:
    found = declared()
    assert found.module_path == "tests.unit.test_handlers.a_function"
    for name in ("backoff", "retry_on", "no_retry", "timeout", "result_ttl", "visibility_timeout", "atomic"):
        assert option(found, name) == option(None, name)
    assert not option(found, "store_result")


def test_options() -> None:
    found = declared(
        visibility_timeout=timedelta(minutes=1),
        timeout=0.5,
        backoff=7,
        retry_on=KeyError,
        no_retry=(ValueError,),
        store_result=True,
        result_ttl=9,
    )
    assert (found.visibility_timeout, found.timeout, found.result_ttl) == (60, 0.5, 9)
    assert found.backoff == Backoff(base=7)
    assert (found.retry_on, found.no_retry) == ((KeyError,), (ValueError,))


@pytest.mark.parametrize(
    ("queue", "options", "error", "message"),
    [
        ("", {}, ValueError, "A queue name has 1 to 191 characters"),
        (a_function, {}, TypeError, "A queue name must be a string, not function"),
        ("q", {"timeout": 0}, ValueError, "timeout must be at least 0.001 seconds"),
        ("q", {"visibility_timeout": 0}, ValueError, "visibility_timeout must be from 1"),
        ("q", {"retry_on": "KeyError"}, TypeError, "retry_on takes exception classes"),
        ("q", {"no_retry": 1}, TypeError, "no_retry takes exception classes"),
        ("q", {"store_result": None}, TypeError, "store_result must be True or False"),
        ("q", {"takes_context": 1}, TypeError, "takes_context must be True or False"),
        ("q", {"backoff": -1}, ValueError, "backoff must be from 0"),
    ],
)
def test_nonsense_is_refused(queue: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        handler(queue, **options)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"@handler\('q'\) stands before a function, not 5"):
        handler("q")(5)  # type: ignore[type-var]


def a_generator(payload: Any) -> Iterator[int]:
    yield payload


async def an_async_generator(payload: Any) -> AsyncIterator[int]:
    yield payload


class Caller:
    def __call__(self, payload: Any) -> Any:
        return payload


class Awaitable:
    async def __call__(self, payload: Any) -> Any:
        return payload


class Generating:
    def __call__(self, payload: Any) -> Iterator[int]:
        yield payload


@pytest.mark.parametrize(
    "function",
    [a_generator, an_async_generator, partial(a_generator), Generating()],
    ids=["sync", "async", "partial", "object"],
)
@pytest.mark.parametrize("declare", [handler, outbox])
def test_what_does_nothing_when_it_is_called_is_refused(declare: Any, function: Any) -> None:
    with pytest.raises(TypeError, match="is a generator: no call runs it"):
        declare("q")(function)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (partial(a_function), "tests.unit.test_handlers.a_function"),
        (partial(partial(a_coroutine)), "tests.unit.test_handlers.a_coroutine"),
        (Caller(), "tests.unit.test_handlers.Caller"),
        (Awaitable(), "tests.unit.test_handlers.Awaitable"),
        (Caller().__call__, "tests.unit.test_handlers.Caller.__call__"),
        (len, "builtins.len"),
    ],
)
def test_whatever_can_be_called(function: Any, name: str) -> None:
    made = declared("one", function)
    assert made.module_path == name
    payload = [1]
    expected = 1 if function is len else payload
    assert made.call(payload) == expected
    assert asyncio.run(made.acall(payload)) == expected
    assert callables.name(function)


@pytest.mark.parametrize("made", [a_coroutine, a_generator, an_async_generator])
def test_work_that_is_only_begun_has_failed(made: Any) -> None:
    """A plain function that returns what nobody awaits: its work would be lost without a word."""
    hollow = declared("one", lambda payload: made(payload))
    for call in (hollow.call, async_to_sync(hollow.acall)):
        with pytest.raises(TypeError, match=r"it returned a (coroutine|generator)"):
            call(1)


def test_two_handlers_of_one_queue_are_named() -> None:
    declared()
    with pytest.raises(ValueError, match=r"'q' has two handlers: tests.*\.a_function and tests.*\.another\."):
        declared(function=another)
    assert registry.handler("q").func is a_function


def test_a_module_may_be_loaded_again() -> None:
    declared()
    version = registry.version()
    assert declared(timeout=5).timeout == 5
    assert registry.version() > version


def test_one_function_for_two_queues() -> None:
    assert declared("one").func is declared("two").func


def test_it_can_be_called_here_and_now() -> None:
    assert declared("one").call(1) == declared("two", a_coroutine).call(1) == 1
    assert asyncio.run(declared("two", a_coroutine).acall(2)) == 2
    assert asyncio.run(declared("one").acall(3)) == 3


@pytest.mark.parametrize(
    ("payload", "sealed"),
    [
        ('{"__honker_task__": {}}', True),
        ('{"__honker_task__": oops', True),
        (b'{"__honker_task__": oops', True),
        ('{"alkstore": 1, "__honker_task__": {}}', True),
        ('{"to": "__honker_task__"}', False),
        ('["__honker_task__"]', False),
        ("", False),
        (b"\xff", False),
    ],
)
def test_what_means_to_be_a_task(payload: Any, sealed: bool) -> None:
    assert envelopes.is_sealed(payload) is sealed
    assert tables.TASK_PREFIX == envelopes.BEGINNING
