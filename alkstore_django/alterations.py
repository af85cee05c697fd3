"""What ``using`` has changed of a declared task, as it travels with the job in our part of the envelope.

The rest of a task's options is that of the code that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, fields
from typing import Any

from . import registry
from .backoff import Backoff
from .metadata_values import checked
from .tasks import AlkTask
from .values import seconds, span


def _backoff(value: Any) -> Backoff:
    return Backoff(*value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"a flag is True or False, not {value!r}")
    return value


READERS: dict[str, Callable[[Any], Any]] = {
    "timeout": lambda value: span("timeout", value, low=0.001),
    "backoff": _backoff,
    "store_result": _flag,
    "result_ttl": lambda value: seconds("result_ttl", value, low=1),
    "metadata": checked,
}
"""The options that travel, and how each is read."""


def of(task: Any, name: str) -> dict[str, Any]:
    """Those options of a task, stored under ``name``, that are not as they were declared."""
    declared = registry.known(name)
    if declared is None or declared is task or not isinstance(task, AlkTask):
        return {}
    changed = {
        option: getattr(task, option)
        for option in READERS
        if getattr(task, option) != getattr(declared, option, None)
    }
    if "backoff" in changed:
        changed["backoff"] = list(astuple(changed["backoff"]))
    return changed


def read(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The options in an envelope; without what another program may have put there that is none."""
    found = {}
    for option in READERS.keys() & stored.keys():
        try:
            found[option] = READERS[option](stored[option])
        except (TypeError, ValueError):
            continue
    return found


def applied(task: Any, stored: Mapping[str, Any]) -> Any:
    """The task as it was enqueued."""
    if not stored or not isinstance(task, AlkTask) or not (changes := read(stored)):
        return task
    return unvalidated(type(task), {each.name: getattr(task, each.name) for each in fields(task)} | changes)


def unvalidated(cls: type[Any], values: dict[str, Any]) -> Any:
    """A task of those values, without Django's checks: the settings may have changed since its enqueue."""
    task = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(task, name, value)
    return task
