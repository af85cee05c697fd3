"""Which tasks there are, by the name that is stored with their jobs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from .compat import Task
from .conf import settings
from .exceptions import UnknownTask

MODULES = ("tasks", "schedules", "outbox", "consumers")
"""Modules of installed apps that workers and commands import."""

_tasks: dict[str, Any] = {}
_handlers: dict[str, Any] = {}
_changes = 0


def register(name: str, task: Any) -> None:
    """Remember a task under its name. Raises ``ValueError`` if another function has it."""
    global _changes  # noqa: PLW0603 - the registry is the module
    known = _tasks.get(name)
    if known is None or (known.func is not task.func and known.module_path == task.module_path):
        _tasks[name] = task  # new, or its module was loaded again
        _changes += 1
    elif known.func is not task.func:
        raise ValueError(
            f"Two tasks have the name {name!r}: {known.module_path} and {task.module_path}. "
            "Give one of them another name=."
        )


def find(name: str) -> Any:
    """The task of that name. Raises ``UnknownTask``; nothing but a task is ever returned.

    A module is imported for it only if it lies inside an installed app: names come from a table that
    others may write to.
    """
    if name in _tasks:
        return _tasks[name]
    module, _, attribute = name.rpartition(".")
    if not _inside_installed_app(module):
        raise UnknownTask(f"no task {name!r} is registered, and {module!r} is not in an installed app")
    try:
        found = getattr(import_module(module), attribute, None)
    except (Exception, SystemExit) as error:  # a script that exits when it is imported is no task either
        raise UnknownTask(f"no task {name!r}: importing {module!r} failed: {error}") from error
    if name in _tasks:  # the module has declared it under a name of its own
        return _tasks[name]
    if not isinstance(found, Task):
        raise UnknownTask(f"no task {name!r}: the module {module!r} has no task of that name")
    return found


def known(name: str) -> Any:
    """The task of that name as far as one is imported, or ``None``."""
    return _tasks.get(name)


def register_handler(handler: Any) -> None:
    """Remember the handler of a queue. Raises ``ValueError`` if another function has it."""
    global _changes  # noqa: PLW0603 - the registry is the module
    known = _handlers.get(handler.queue_name)
    if known is not None and known.module_path != handler.module_path:
        raise ValueError(
            f"Queue {handler.queue_name!r} has two handlers: {known.module_path} and {handler.module_path}. "
            "One function gets all payloads of a queue that are no tasks."
        )
    _handlers[handler.queue_name] = handler
    _changes += 1


def handler(queue: str) -> Any:
    """The handler of a queue, or ``None``."""
    return _handlers.get(queue)


def handlers() -> list[Any]:
    """Every handler that has been imported so far."""
    return list(_handlers.values())


def is_known(name: str) -> bool:
    """Whether ``find`` would answer without importing anything."""
    return name in _tasks


def declared() -> list[Any]:
    """Every task that has been imported so far."""
    return list(_tasks.values())


def version() -> int:
    """Another number whenever ``declared`` or ``handlers`` has another answer."""
    return _changes


def autodiscover() -> None:
    """Import the modules in which tasks are declared."""
    autodiscover_modules(*MODULES)
    for module in settings.IMPORTS:
        import_module(module)


def _inside_installed_app(module: str) -> bool:
    return any(f"{module}.".startswith(f"{config.name}.") for config in apps.get_app_configs())
