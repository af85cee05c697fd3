"""Which queues a worker serves, and how long it may hold what it claims there."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from alkstore_django import handlers, registry, served, turns
from alkstore_django.conf import settings
from alkstore_django.envelopes import task_name
from alkstore_django.exceptions import UnknownTask
from alkstore_django.selection import Selection, escaped
from alkstore_django.turns import Wish

from .probes import Probes

LOOK = 1.0
"""Seconds between two looks for queues that a pattern matches; more where a look takes over 1/20 of it."""


class Plan:
    """``wanted`` are names and patterns in order of precedence; none means the queues of our ``TASKS``
    aliases on that database. ``excluded`` are never served.

    ``visibility_timeout`` is the default, in seconds, of tasks that do not say their own.
    """

    def __init__(
        self,
        using: str,
        wanted: Sequence[str],
        visibility_timeout: int | None,
        excluded: Sequence[str] = (),
    ) -> None:
        self._using = using
        self._selection = Selection(wanted, excluded)
        self._default = visibility_timeout or settings.VISIBILITY_TIMEOUT
        self._look_at = 0.0
        self._probes = Probes(using)
        self._taskless: frozenset[str] = frozenset()
        self._version = -1
        self._visibilities: dict[str, int] = {}
        named = self._selection.exact if wanted else served.queues(using)
        self.queues = self._selection.without_excluded(named)
        """What is served now, in order of precedence."""
        self.handled = served.handled_queues(using)
        """Queues of which everything is claimed: a handler gets what is no task."""
        self.named = {*self._selection.exact, *served.named_queues(using)}
        """Queues that somebody has said are ours: only there undecodable payloads are buried."""
        self.patterns = list(wanted) or [escaped(name) for name in self.queues], list(excluded)
        """What is served, and what is not, in the words of the command line."""
        self.paused: frozenset[str] = frozenset()
        """Queues that nothing is claimed of for now (``Pauses``)."""
        self.description = ", ".join(dict.fromkeys(wanted) if self._selection.is_open else self.queues)
        """What is served, for people; patterns as they were given."""

    @property
    def serves_any(self) -> bool:
        """Whether there can ever be a queue to serve."""
        return bool(self.queues) or self._selection.is_open

    def look(self, *, now: bool = False) -> None:
        """Find the queues that there are, where a pattern was given: when it is time, or at once."""
        started = time.monotonic()
        if self._selection.is_open and (now or self._look_at <= started):
            self.queues = self._selection.among(turns.queues(self._using))
            finished = time.monotonic()
            self._look_at = finished + max(LOOK, 20 * (finished - started))
        if self._selection.is_open:
            foreign = [queue for queue in self.queues if queue not in self.named | self.handled]
            self._taskless = self._probes.taskless(foreign, now=now)

    def next_look(self) -> float:
        """Seconds until queues are to be looked for again; infinite without a pattern."""
        if not self._selection.is_open:
            return math.inf
        return min(max(0.0, self._look_at - time.monotonic()), self._probes.due_in())

    def wishes(self, room: int) -> list[Wish]:
        """Each queue is claimed with the smallest visibility timeout of its tasks. Not one that is paused,
        or that only a pattern matches and that holds no tasks."""
        queues = [queue for queue in self.queues if queue not in self.paused | self._taskless]
        return [
            Wish(queue, room, self._visibility(queue), tasks_only=queue not in self.handled)
            for queue in queues
        ]

    def own_visibility(self, claim: Any) -> int:
        """The visibility timeout of the claim's own task, in seconds."""
        try:
            return self._of(handlers.of_claim(claim) or registry.find(task_name(claim.payload)))
        except UnknownTask:
            return self._default

    def _visibility(self, queue: str) -> int:
        if self._version != (version := registry.version()):
            self._visibilities, self._version = {}, version
        if queue not in self._visibilities:
            declared = registry.declared() + registry.handlers()
            own = [self._of(each) for each in declared if each.queue_name == queue]
            self._visibilities[queue] = min(own, default=self._default)
        return self._visibilities[queue]

    def _of(self, task: Any) -> int:
        return getattr(task, "visibility_timeout", None) or self._default
