"""``@task``: Django's decorator, with what Django does not have yet.

A task is enqueued with Django's own API (``send_receipt.enqueue(1)``) and run by ``manage.py
alkworker``. Plain ``django.tasks.task`` functions run too, with the defaults given here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.utils import timezone

from . import metadata_values, registry
from .backoff import Backoff, as_backoff
from .compat import DEFAULT_TASK_BACKEND_ALIAS, DEFAULT_TASK_PRIORITY, DEFAULT_TASK_QUEUE_NAME, AnyTask, Task
from .conf import settings
from .handlers import Handler
from .keys import EXISTING, FINISHED, as_conflict, as_lasting, as_unique
from .names import checked
from .values import exception_classes, seconds, span, whole

Duration = int | float | timedelta
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AlkTask(AnyTask):
    """A task with our options; see ``task`` for what they mean."""

    task_name: str | None = None
    max_attempts: int = MAX_ATTEMPTS
    backoff: Backoff = Backoff()
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    no_retry: tuple[type[BaseException], ...] = ()
    visibility_timeout: int | None = None
    timeout: float | None = None
    expires: int | None = None
    store_result: bool = True
    result_ttl: int | None = None
    atomic: bool | str = False
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    unique: bool | str | None = None
    unique_for: str | int = FINISHED
    on_conflict: str = EXISTING

    def __post_init__(self) -> None:
        # A dataclass with slots is a new class: super() without arguments would not find it.
        Task.__post_init__(self)
        set_ = object.__setattr__
        if self.task_name is not None:
            checked("task", self.task_name)
        set_(self, "max_attempts", whole("max_attempts", self.max_attempts, 1))
        set_(self, "backoff", as_backoff(self.backoff))
        set_(self, "retry_on", exception_classes("retry_on", self.retry_on))
        set_(self, "no_retry", exception_classes("no_retry", self.no_retry))
        for name, low in (("visibility_timeout", 1), ("expires", 0), ("result_ttl", 1)):
            value = getattr(self, name)
            set_(self, name, None if value is None else seconds(name, value, low=low))
        set_(self, "timeout", None if self.timeout is None else span("timeout", self.timeout, low=0.001))
        set_(self, "unique", as_unique(self.unique))
        set_(self, "unique_for", as_lasting(self.unique_for))
        set_(self, "on_conflict", as_conflict(self.on_conflict))
        if not isinstance(self.store_result, bool):
            raise TypeError(f"store_result must be True or False, not {self.store_result!r}.")
        if self.metadata:
            set_(self, "metadata", metadata_values.checked(self.metadata))
        if not isinstance(self.atomic, bool | str):
            raise TypeError(f"atomic must be True, False or the alias of a database, not {self.atomic!r}.")
        if self.atomic is not False and iscoroutinefunction(self.func):
            raise ValueError(
                f"{self.module_path} is a coroutine function and cannot be atomic: a transaction belongs to "
                "one thread. Write it with def."
            )
        registry.register(stored_name(self), self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        max_attempts: int | None = None,
        expires: Duration | None = None,
        backoff: Backoff | Duration | None = None,
        timeout: Duration | None = None,
        store_result: bool | None = None,
        result_ttl: Duration | None = None,
        metadata: dict[str, Any] | None = None,
        unique: bool | str | None = None,
        unique_for: str | Duration | None = None,
        on_conflict: str | None = None,
    ) -> Any:
        """A copy with other values, which travel with its jobs; ``None`` leaves one as it is.

        ``run_after`` may be a ``timedelta`` from now. ``metadata`` is what ``context.metadata`` and the
        results begin with. ``unique=False`` takes the key away. Raises as the declaration does.
        """
        if isinstance(run_after, timedelta):
            run_after = timezone.now() + run_after
        given: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            "max_attempts": max_attempts,
            "expires": expires,
            "backoff": None if backoff is None else as_backoff(backoff),
            "timeout": timeout,
            "store_result": store_result,
            "result_ttl": result_ttl,
            "metadata": metadata,
            "unique": unique,
            "unique_for": unique_for,
            "on_conflict": on_conflict,
        }
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def enqueue_on_commit(self, *args: Any, using: str | None = None, **kwargs: Any) -> Any:
        """Enqueue when the transaction of the caller is committed; at once outside of one.

        The transaction is that of the queue's database, or of the database ``using``. Take it only where
        that is another than the queue's, so that nothing runs for a transaction that was rolled back.

        **It is the weaker promise.** Between the commit and the callback the process may die, and the
        enqueue may fail, which is logged: then the task is lost. Plain ``enqueue`` in a transaction of the
        queue's own database is a part of it and loses nothing, and no worker sees the job before the commit.

        Returns a ``Promise``, whose ``result`` is there after the commit. Arguments, language and time zone
        are those of now. Costs a callback and, after the commit, an ``enqueue`` in a transaction of its own.
        Raises what ``enqueue`` raises for bad input, at the call. A keyword ``using`` of the task itself
        can be given only by position.
        """
        from . import commits

        return commits.enqueue(self, args, kwargs, using)

    async def aenqueue_on_commit(self, *args: Any, using: str | None = None, **kwargs: Any) -> Any:
        """``enqueue_on_commit``, awaited: about the transaction of sync code around it."""
        return await sync_to_async(self.enqueue_on_commit)(*args, using=using, **kwargs)

    def enqueue_many(self, calls: Iterable[Any]) -> list[Any]:
        """Enqueue once for each call, all or none; the results in order.

        A call is a tuple or list of positional arguments, or a dict of keyword arguments:
        ``send.enqueue_many([(1,), (2,)])``. On a backend without bulk it is a loop.
        """
        backend = self.get_backend()
        if hasattr(backend, "enqueue_many"):
            return list(backend.enqueue_many(self, calls))
        return [self.enqueue(**call) if isinstance(call, dict) else self.enqueue(*call) for call in calls]

    async def aenqueue_many(self, calls: Iterable[Any]) -> list[Any]:
        return await sync_to_async(self.enqueue_many)(calls)


def task(
    function: Callable[..., Any] | None = None,
    *,
    priority: int = DEFAULT_TASK_PRIORITY,
    queue_name: str = DEFAULT_TASK_QUEUE_NAME,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    name: str | None = None,
    max_attempts: int = MAX_ATTEMPTS,
    backoff: Backoff | Duration | None = None,
    retry_on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
    no_retry: type[BaseException] | tuple[type[BaseException], ...] = (),
    visibility_timeout: Duration | None = None,
    timeout: Duration | None = None,
    expires: Duration | None = None,
    store_result: bool = True,
    result_ttl: Duration | None = None,
    atomic: bool | str = False,
    unique: bool | str | None = None,
    unique_for: str | Duration = FINISHED,
    on_conflict: str = EXISTING,
) -> Any:
    """Declare a task; Django's own arguments first, then ours. Durations are seconds or ``timedelta``.

    ``name``
        Stored with its jobs; default: the dotted path of the function, as in honker.
    ``max_attempts``
        How often a job may be started in all, before it is a dead letter.
    ``backoff``
        The wait before the next attempt: a ``Backoff``, or its base (default 15 s, doubled each time
        up to an hour, give or take a tenth).
    ``retry_on``, ``no_retry``
        Exceptions after which to try again (default: any ``Exception``), and those that make a dead
        letter at once. ``raise Retry(after=...)`` and ``raise Discard(reason)`` decide from inside.
    ``visibility_timeout``
        How long a claim holds without a sign of life of its worker; default
        ``ALKSTORE["VISIBILITY_TIMEOUT"]``. It does not limit how long the task may run.
    ``timeout``
        How long an attempt may run, fractions of a second included; default: without end. Then
        ``TaskTimedOut`` is raised in its code, or a coroutine is cancelled, and the attempt has failed.
    ``expires``
        A job that was not started this long after its enqueue is a dead letter.
    ``store_result``, ``result_ttl``
        Whether the return value is kept, and how long; default ``ALKSTORE["RESULT_TTL"]``.
    ``atomic``
        Whether the task's writes to the database of its queue and the end of its job are one
        transaction: both are there or neither. An alias says the same, and that it must be that database.
    ``unique``
        Whether there may be one job at a time only: of the same arguments (``True``), or of the same key,
        a string of any length. ``enqueue`` then answers with the job that holds the key.
    ``unique_for``
        Until when the key is held: ``"finished"``, ``"queued"`` (until the job is claimed), or for a
        duration from the enqueue. A job that dies, is cancelled or expires gives it up in any case.
    ``on_conflict``
        What to do when the key is held: ``"existing"`` answers with the holder's result, whose ``created``
        is ``False``; ``"ignore"`` does so without a signal and a log line; ``"replace"`` cancels a holder
        that has not started and takes its place.

    Raises ``InvalidTask`` for what ``django.tasks`` refuses, ``TypeError`` and ``ValueError`` for the
    rest, when the module is imported.
    """

    def wrap(func: Callable[..., Any]) -> Any:
        options: dict[str, Any] = {
            "task_name": name,
            "max_attempts": max_attempts,
            "backoff": as_backoff(backoff),
            "retry_on": retry_on,
            "no_retry": no_retry,
            "visibility_timeout": visibility_timeout,
            "timeout": timeout,
            "expires": expires,
            "store_result": store_result,
            "result_ttl": result_ttl,
            "atomic": atomic,
            "unique": unique,
            "unique_for": unique_for,
            "on_conflict": on_conflict,
        }
        return AlkTask(
            func=func,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            run_after=None,
            takes_context=takes_context,
            **options,
        )

    return wrap if function is None else wrap(function)


def stored_name(task: Any) -> str:
    """The name under which a task's jobs are stored."""
    return str(getattr(task, "task_name", None) or task.module_path)


def option(task: Any, name: str) -> Any:
    """An option of any task or handler: plain tasks of ``django.tasks`` have our defaults."""
    value = getattr(task, name) if isinstance(task, _OURS) else _DEFAULTS[name]
    if value is None and (fallback := _FALLBACKS.get(name)):
        return getattr(settings, fallback)
    return value


_OURS = (AlkTask, Handler)
_DEFAULTS = {each.name: each.default for each in fields(AlkTask) if each.default is not MISSING}
_FALLBACKS = {"visibility_timeout": "VISIBILITY_TIMEOUT", "result_ttl": "RESULT_TTL"}


def check_database(task: Any, using: str) -> None:
    """Raises ``ValueError`` if an atomic task is about another database than that of its job."""
    atomic = option(task, "atomic")
    if isinstance(atomic, str) and atomic != using:
        raise ValueError(
            f"{stored_name(task)} is atomic in database {atomic!r}, and its job is in {using!r}: "
            "one transaction cannot hold both."
        )
