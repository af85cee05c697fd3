"""What may stand where a function is declared: functions, methods, partials, objects with a ``__call__``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from asgiref.sync import iscoroutinefunction


def path(function: Callable[..., Any]) -> str:
    """Its dotted path: of a partial that of its function, of an object that of its class."""
    named = _named(function)
    return f"{named.__module__}.{named.__qualname__}"


def name(function: Callable[..., Any]) -> str:
    """The name of its code."""
    return str(_code(function).__name__)


def is_coroutine(function: Callable[..., Any]) -> bool:
    """Whether a call has to be awaited."""
    return iscoroutinefunction(function) or iscoroutinefunction(_code(function))


def is_generator(function: Callable[..., Any]) -> bool:
    """Whether a call does nothing: it makes a generator, whose first step comes later."""
    code = _code(function)
    return inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code)


def done(value: Any) -> Any:
    """What a call has returned. Raises ``TypeError`` for a coroutine or generator: its body has not run."""
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("it returned a coroutine, which nobody awaits: declare it with async def")
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        raise TypeError("it returned a generator, of which nobody asks anything: its body does not run")
    return value


def _named(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


def _code(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    is_object = not (inspect.isroutine(function) or inspect.isclass(function))
    return type(function).__call__ if is_object else function
