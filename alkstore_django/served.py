"""Which queues belong to this project: those of its ``TASKS`` aliases that are ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .compat import DEFAULT_TASK_QUEUE_NAME, task_backends
from .models import alias
from .registry import declared, handlers
from .tasks import AlkTask


def backends(using: str) -> list[Any]:
    """Our task backends whose jobs are in that database."""
    return [backend for backend in _ours() if backend.using == using]


def queues(using: str) -> list[str]:
    """What a worker serves by default: the queues in ``QUEUES`` of those backends, or, where that is
    empty, those of the declared tasks, and ``default``; and those with a handler."""
    found: set[str] = set()
    for backend in backends(using):
        used = {task.queue_name for task in declared() if task.backend == backend.alias}
        found |= backend.queues or used | {DEFAULT_TASK_QUEUE_NAME}
    return sorted(found | handled_queues(using))


def named_queues(using: str) -> set[str]:
    """The queues that ``QUEUES`` of those backends names."""
    return {name for backend in backends(using) for name in backend.queues}


def handled_queues(using: str) -> set[str]:
    """The queues of that database that have a handler."""
    return {each.queue_name for each in handlers() if each.is_in(using)}


def databases() -> list[str]:
    """The aliases of the databases that hold jobs of ours."""
    return sorted({backend.using for backend in _ours()} or {alias(None)})


def _ours() -> list[Any]:
    return [backend for backend in _loadable() if issubclass(backend.task_class, AlkTask)]


def _loadable() -> Iterator[Any]:
    """The system checks complain of the others; they keep nobody from the queues of these."""
    for name in task_backends:
        with suppress(task_backends.exception_class):
            yield task_backends[name]
