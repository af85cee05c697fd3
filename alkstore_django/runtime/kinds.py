"""Which of a worker's executors a job is for: a thread, or the event loop."""

from __future__ import annotations

import re
from contextlib import suppress
from enum import Enum
from typing import Any

from alkstore_django import callables, handlers, registry
from alkstore_django.envelopes import ENVELOPE, task_name
from alkstore_django.exceptions import UnknownTask
from alkstore_django.tasks import stored_name

# Names in which JSON escapes nothing; for any others the payload is decoded.
_TEXT = rf'\{{"{ENVELOPE}":\s*\{{"task":\s*"([ !#-\[\]-~]+)"'
_BEGINNING, _BEGINNING_OF_BYTES = re.compile(_TEXT), re.compile(_TEXT.encode())


NEWEST = 0.1
"""The weight of the newest job when the share of coroutines in its queue is estimated."""


class Kind(Enum):
    """What a task's function is."""

    SYNC = "sync"
    ASYNC = "async"

    __hash__ = object.__hash__  # Enum's own is Python code, and these are the keys of busy dicts


def of_task(task: Any) -> Kind:
    """What takes several at once is called in a thread, also if it is a coroutine function."""
    is_async = callables.is_coroutine(task.func) and getattr(task, "batch", None) is None
    return Kind.ASYNC if is_async else Kind.SYNC


class Kinds:
    """Tells the kind of claimed jobs, and what to expect of a queue. Safe from any thread."""

    def __init__(self) -> None:
        self._version = -1
        self._coroutines: frozenset[str] = frozenset()
        self._handled: frozenset[str] = frozenset()
        self._of_queues: dict[str, set[Kind]] = {}
        self._seen: dict[str, set[Kind]] = {}
        self._coroutine_share: dict[str, float] = {}
        self.batches: dict[str, int] = {}
        """How many events the outboxes of queues take at once, where those get lists."""

    def of_claim(self, claim: Any) -> Kind:
        """By what is imported so far: an unknown task is one for a thread, which may import it."""
        self._look()
        if claim.queue in self._handled and (found := handlers.of_claim(claim)):
            return of_task(found)
        # While no coroutine is declared, without a look at the payload.
        is_async = self._coroutines and _name(claim.payload) in self._coroutines
        return Kind.ASYNC if is_async else Kind.SYNC

    def of_claim_once_imported(self, claim: Any) -> Kind:
        """The same, after importing the module of a task that is not known yet. That may take long."""
        name = _name(claim.payload)
        if not name or registry.is_known(name):
            return self.of_claim(claim)
        with suppress(UnknownTask):
            return of_task(registry.find(name))
        return Kind.SYNC

    def note(self, claim: Any, kind: Kind) -> None:
        """The queue has a job of that kind, whatever is declared for it."""
        self._seen.setdefault(claim.queue, set()).add(kind)
        share = self._coroutine_share.get(claim.queue, 0.0)
        self._coroutine_share[claim.queue] = share + ((kind is Kind.ASYNC) - share) * NEWEST

    def coroutine_share(self, queue: str) -> float:
        """Of the latest jobs of a queue, from 0 to 1."""
        return self._coroutine_share.get(queue, 0.0)

    def batch(self, claim: Any) -> int:
        """With how many a claim may be delivered at most: with none once that has failed."""
        return self.batches.get(claim.queue, 1) if claim.attempts == 1 < claim.max_attempts else 1

    def of_queue(self, queue: str) -> set[Kind]:
        """The kinds of the tasks that are declared for a queue, or that it had already."""
        self._look()
        kinds = self._of_queues.get(queue, set()) | self._seen.get(queue, set())
        return kinds or {Kind.SYNC}

    def _look(self) -> None:
        if self._version == (version := registry.version()):
            return
        tasks, found = registry.declared(), registry.handlers()
        of_queues: dict[str, set[Kind]] = {}
        for task in tasks + found:
            of_queues.setdefault(task.queue_name, set()).add(of_task(task))
        self._coroutines = frozenset(stored_name(each) for each in tasks if of_task(each) is Kind.ASYNC)
        self._handled = frozenset(each.queue_name for each in found)
        self.batches = {each.queue_name: each.batch for each in found if each.batch}
        self._of_queues = of_queues
        self._version = version


def _name(payload: str | bytes) -> str:
    """The task's name, found at the beginning of the payload as ``Envelope.seal`` writes it."""
    pattern = _BEGINNING_OF_BYTES if isinstance(payload, bytes) else _BEGINNING
    found = pattern.match(payload)  # type: ignore[arg-type]
    if found is None:
        return task_name(payload)
    name: str | bytes = found[1]
    return name.decode() if isinstance(name, bytes) else name
