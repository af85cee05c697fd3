"""What a schedule is made of, checked before any SQL: ``ValueError`` names the field that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings as django_settings

from . import keys, payloads, registry
from .compat import InvalidTask, Task
from .cron import Cron
from .cron_zones import zone
from .exceptions import UnknownTask
from .names import checked
from .tasks import option, stored_name
from .values import seconds, whole

LATEST, ALL, NONE = "latest", "all", "none"
CATCH_UPS = (LATEST, ALL, NONE)
MAX_ZONE = 64
"""Characters of a zone's name."""

Duration = int | float | timedelta


class Unset:
    """The value of a field of which nothing is said."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = Unset()


@dataclass(frozen=True, slots=True)
class Definition:
    """A schedule as somebody wants it. ``payload`` is JSON text, ``expires`` seconds."""

    name: str
    queue: str
    payload: str
    cron: Cron
    catch_up: str
    overlap: bool
    priority: int
    expires: int | None
    max_attempts: int
    enabled: bool
    task: Any = field(default=None, compare=False)


def define(
    name: str,
    expression: str,
    task: Any = None,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    payload: Any = UNSET,
    timezone: str | None = None,
    catch_up: str = LATEST,
    overlap: bool = True,
    priority: int | None = None,
    expires: Duration | None = None,
    max_attempts: int | None = None,
    enabled: bool = True,
    seals: bool = True,
) -> Definition:
    """Check it all. Raises ``ValueError``; see ``schedules.register`` for what the fields mean.

    Not ``seals``: the task may belong to a backend that is not ours, and there is no payload.
    """
    with _naming("name"):
        checked("schedule", name)
    cron = read(expression, timezone)
    if (task is None) == (payload is UNSET):
        raise ValueError("task: a schedule has either a task or a payload.")
    if payload is UNSET:
        found = the_task(task)
        with _naming(""):
            text = sealed(found, args, kwargs) if seals else ""
        queue = found.queue_name if queue is None else queue
        priority = int(found.priority) if priority is None else priority
        expires = option(found, "expires") if expires is None else expires
        max_attempts = option(found, "max_attempts") if max_attempts is None else max_attempts
    else:
        found = None
        if args or kwargs:
            raise ValueError("args: only a task has arguments; a payload is all there is.")
        if queue is None:
            raise ValueError("queue: a payload without a task needs the name of its queue.")
        with _naming(""):
            text = payloads.encode(payload)
    with _naming("queue"):
        checked("queue", queue)
    with _naming(""):
        return Definition(
            name=name,
            queue=str(queue),
            payload=text,
            cron=cron,
            catch_up=as_catch_up(catch_up),
            overlap=_flag("overlap", overlap),
            priority=whole("priority", 0 if priority is None else priority, -(2**31)),
            expires=None if expires is None else seconds("expires", expires, low=1),
            max_attempts=whole("max_attempts", 3 if max_attempts is None else max_attempts, 1),
            enabled=_flag("enabled", enabled),
            task=found,
        )


def read(expression: str, timezone: str | None) -> Cron:
    """The expression in its zone, by default that of the settings. Raises ``ValueError``, also for a date
    that never comes."""
    name = django_settings.TIME_ZONE if timezone is None else timezone
    with _naming("timezone"):
        if len(zone(name).key) > MAX_ZONE:
            raise ValueError(f"the name of a time zone has at most {MAX_ZONE} characters.")
    with _naming("expression"):
        cron = Cron.parse(expression, name)
        if cron.next_after(datetime.now(UTC)) is None:
            raise ValueError(f"{expression!r} is never due: there is no such date.")
    return cron


@lru_cache(maxsize=20_000)
def cron_of(expression: str, timezone: str, *, is_foreign: bool = False) -> Cron:
    """What is stored, read; kept for the next time. Raises ``CronError``."""
    return (Cron.parse_foreign if is_foreign else Cron.parse)(expression, timezone)


def the_task(task: Any) -> Any:
    """The task itself, or that of a dotted path or stored name. Raises ``ValueError``."""
    if isinstance(task, str):
        try:
            task = registry.find(task)
        except UnknownTask as error:
            raise ValueError(f"task: {error}") from error
    if not isinstance(task, Task):
        raise ValueError(f"task: this must be a task or the dotted path of one, not {task!r}.")
    if task.run_after is not None:
        raise ValueError("task: run_after has no place in a schedule, which says itself when it is due.")
    return task


def sealed(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> str:
    """The payload of a call of a task. Raises ``TypeError`` and ``ValueError``."""
    backend = task.get_backend()
    if not hasattr(backend, "envelope"):
        raise ValueError(
            f"task: {stored_name(task)} belongs to {backend.alias!r}, which is no backend of ours."
        )
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        raise ValueError(f"args: this must be a list or tuple, not {args!r}.")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise ValueError(f"kwargs: this must be a dict, not {kwargs!r}.")
    if problem := keys.misfit(task, args, kwargs or {}):
        raise ValueError(f"args: {stored_name(task)} does not take these: {problem}.")
    return str(backend.envelope(task, args, kwargs or {}).seal())


def database_of(task: Any) -> str:
    """The alias of the database that the jobs of a task are in."""
    return str(task.get_backend().using)


def as_catch_up(value: object) -> str:
    if value not in CATCH_UPS:
        raise ValueError(f"catch_up: this must be {', '.join(map(repr, CATCH_UPS))}, not {value!r}.")
    return str(value)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: this must be True or False, not {value!r}.")
    return value


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """``ValueError`` for whatever is wrong, with the name of the field before it."""
    try:
        yield
    except (TypeError, ValueError, InvalidTask) as error:
        if isinstance(error, ValueError) and not name:
            raise
        raise ValueError(f"{name}: {error}" if name else str(error)) from error
