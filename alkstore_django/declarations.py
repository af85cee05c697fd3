"""Schedules that the code declares, by ``@schedule`` or in the settings. Nothing here asks a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from .compat import Task
from .conf import settings
from .models import alias
from .schedule_rows import CODE, SETTINGS
from .schedule_values import LATEST, Definition, Duration, database_of, define
from .tasks import stored_name

_declared: dict[str, Declaration] = {}


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the code says of a schedule, as it was given: the settings may change what it comes to."""

    name: str
    owner: str
    given: Any = field(hash=False)
    """A dict of the arguments of ``schedules.register``; in the settings there may be something else."""

    def define(self) -> Definition:
        """Raises ``ValueError``."""
        if not isinstance(self.given, Mapping):
            raise ValueError(f"it must be a dict with task and expression, not {self.given!r}.")
        if unknown := [repr(key) for key in self.given if key not in _FIELDS]:
            raise ValueError(f"{', '.join(unknown)}: unknown; there are {', '.join(sorted(_FIELDS))}.")
        if "expression" not in self.given:
            raise ValueError("expression: it is missing.")
        return define(self.name, **self.given)

    @property
    def database(self) -> str | None:
        """The alias of the database that it belongs to; ``None`` if its task is of a backend that is not
        ours, as in tests that run tasks at once."""
        task = self.given.get("task") if isinstance(self.given, Mapping) else None
        if not isinstance(task, Task):
            found = self.define()
            return alias(None) if found.task is None else database_of(found.task)
        return database_of(task) if hasattr(task.get_backend(), "using") else None


def schedule(
    expression: str,
    *,
    timezone: str | None = None,
    catch_up: str = LATEST,
    overlap: bool = True,
    name: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    expires: Duration | None = None,
    max_attempts: int | None = None,
    enabled: bool = True,
) -> Callable[[Any], Any]:
    """Declare when a task runs, above its ``@task``. Workers and schedulers write it when they start.

    ``name`` is by default the stored name of the task; a task with several schedules names each but one.
    ``enabled=False`` begins paused. The other fields are those of ``schedules.register``. The task is
    returned as it is. Raises ``ValueError``, and ``TypeError`` for what is no task, at import.
    """

    def declare(task: Any) -> Any:
        if not isinstance(task, Task):
            raise TypeError(f"@schedule stands above @task: it takes a task, not {task!r}.")
        given = {
            "expression": expression,
            "task": task,
            "timezone": timezone,
            "catch_up": catch_up,
            "overlap": overlap,
            "args": args,
            "kwargs": kwargs,
            "queue": queue,
            "priority": priority,
            "expires": expires,
            "max_attempts": max_attempts,
            "enabled": enabled,
        }
        _remember(Declaration(stored_name(task) if name is None else name, CODE, given))
        return task

    return declare


def _remember(declaration: Declaration) -> None:
    name, task = declaration.name, declaration.given["task"]
    define(name, **declaration.given, seals=declaration.database is not None)
    known = _declared.get(name)
    if known is not None:
        theirs = known.given["task"]
        is_reloaded = theirs.module_path == task.module_path and theirs.func is not task.func
        if not is_reloaded:
            raise ValueError(
                f"name: there are two schedules {name!r}, of {theirs.module_path} and {task.module_path}. "
                "Give one of them another name=."
            )
    _declared[name] = declaration


def declared() -> list[Declaration]:
    """All that the modules which were imported so far declare, and the settings; names may be there twice."""
    return [*_declared.values(), *_of_settings()]


def problems() -> Iterator[tuple[str, str]]:
    """What is wrong with ``ALKSTORE["SCHEDULES"]``: at which key, as ``['name']``, and why. Imports its
    tasks."""
    for declaration in _of_settings():
        where = f"[{declaration.name!r}]"
        if declaration.name in _declared:
            yield where, "@schedule declares one of the same name."
        try:
            declaration.define()
        except (TypeError, ValueError) as error:
            yield where, str(error)


_FIELDS = set(signature(define).parameters) - {"name", "seals"}


def _of_settings() -> list[Declaration]:
    given = settings.SCHEDULES
    if not isinstance(given, dict):
        return []
    return [Declaration(name, SETTINGS, entry) for name, entry in given.items()]
