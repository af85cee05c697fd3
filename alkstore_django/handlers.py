"""``@handler("emails")``: a function for the payloads of a queue that are no tasks.

Those that another program puts there, or ``Queue.enqueue``. ``manage.py alkworker`` claims and calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from asgiref.sync import async_to_sync, sync_to_async

from . import callables, registry
from .backoff import Backoff, as_backoff
from .contexts import Hold, JobContext
from .envelopes import Envelope, is_sealed, unseal
from .names import checked
from .payloads import decode
from .values import exception_classes, seconds, span

Duration = int | float | timedelta
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A declared handler; see ``handler`` for what its options mean."""

    func: Callable[..., Any]
    queue_name: str
    using: str | None
    takes_context: bool
    visibility_timeout: int | None
    timeout: float | None
    backoff: Backoff
    retry_on: tuple[type[BaseException], ...]
    no_retry: tuple[type[BaseException], ...]
    store_result: bool
    result_ttl: int | None
    atomic: bool = False
    batch: int | None = None
    """How many payloads it gets at once, as a list; ``None``: one, and no list."""
    takes_tasks: ClassVar[bool] = False
    """Whether payloads that look like tasks are its own, too."""

    @property
    def module_path(self) -> str:
        """The dotted path of the function, which the record of a finished job calls its task."""
        return callables.path(self.func)

    @property
    def is_async(self) -> bool:
        return callables.is_coroutine(self.func)

    def call(self, *args: Any) -> Any:
        """Call the function here and now, a coroutine function too."""
        return callables.done((async_to_sync(self.func) if self.is_async else self.func)(*args))

    def is_in(self, database: str) -> bool:
        """Whether payloads of that database are for it."""
        from .models import alias  # tasks may be declared before there are models

        return alias(self.using) == database

    def arguments(self, claim: Any, hold: Hold, args: Sequence[Any], key: str | None) -> list[Any]:
        """What the function gets: the payload, after its context if it takes one."""
        return [JobContext(claim, hold), *args] if self.takes_context else list(args)

    async def acall(self, *args: Any) -> Any:
        return callables.done(await (self.func if self.is_async else sync_to_async(self.func))(*args))


def handler(
    queue: str,
    *,
    using: str | None = None,
    takes_context: bool = False,
    visibility_timeout: Duration | None = None,
    timeout: Duration | None = None,
    backoff: Backoff | Duration | None = None,
    retry_on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
    no_retry: type[BaseException] | tuple[type[BaseException], ...] = (),
    store_result: bool = False,
    result_ttl: Duration | None = None,
) -> Callable[[Function], Function]:
    """Declare the function that gets the decoded payloads of a queue, those of tasks excepted.

    Workers then claim every job of the queue, and serve it by default if it is in their database
    (``using``, by default the router's). What the function raises leads to a retry or a dead letter as in
    a task, within the ``max_attempts`` of the job itself. The options are those of ``task``; with
    ``takes_context`` the first argument is a ``JobContext``. Without ``store_result`` the return value is
    not looked at.

    The function stays as it is, and may be a coroutine function. Raises ``ValueError`` for a second
    handler of a queue, ``TypeError`` and ``ValueError`` for bad options.
    """
    name = checked("queue", queue)
    options: dict[str, Any] = {
        "visibility_timeout": _optional(seconds, "visibility_timeout", visibility_timeout, 1),
        "timeout": _optional(span, "timeout", timeout, 0.001),
        "backoff": as_backoff(backoff),
        "retry_on": exception_classes("retry_on", retry_on),
        "no_retry": exception_classes("no_retry", no_retry),
        "result_ttl": _optional(seconds, "result_ttl", result_ttl, 1),
    }
    for flag, value in (("takes_context", takes_context), ("store_result", store_result)):
        if not isinstance(value, bool):
            raise TypeError(f"{flag} must be True or False, not {value!r}.")
        options[flag] = value

    def register(function: Function) -> Function:
        check_function(f"@handler({name!r})", function)
        registry.register_handler(Handler(func=function, queue_name=name, using=using, **options))
        return function

    return register


def check_function(what: str, function: object) -> None:
    """Raises ``TypeError`` for what does nothing when it is called."""
    if not callable(function):
        raise TypeError(f"{what} stands before a function, not {function!r}.")
    if callables.is_generator(function):
        raise TypeError(f"{what} stands before a function, and {function!r} is a generator: no call runs it.")


def of_claim(claim: Any) -> Handler | None:
    """The handler that a claimed job is for; ``None`` for a task, and in a queue without one."""
    found: Handler | None = registry.handler(claim.queue)
    if found is None or (is_sealed(claim.payload) and not found.takes_tasks):
        return None
    return found


def read(claim: Any) -> tuple[Envelope, Handler | None]:
    """What to call, and with what. Raises ``UndecodablePayload``."""
    found = of_claim(claim)
    if found is None:
        return unseal(claim.payload), None
    return Envelope(found.module_path, [decode(claim.payload)], {}), found


def _optional(check: Callable[..., Any], name: str, value: Any, low: float) -> Any:
    return None if value is None else check(name, value, low=low)
