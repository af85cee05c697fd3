"""What a worker tidies between its turns, each on a timer that grows with what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable

from alkstore_django import event_lines, sweeps
from alkstore_django.logs import get_logger

from .plan import Plan
from .relays import skipping

logger = get_logger("alkstore_django.worker")

SHARE = 50
"""A chore that took t seconds rests for at least ``SHARE`` * t: it never takes more than 2 % of the time,
except while it has found so much that it is not through: then it rests as long as it took."""


class Chore:
    """Work that is due every ``every`` seconds at most; ``work`` tells whether it has more to do."""

    def __init__(self, every: float, work: Callable[[], bool]) -> None:
        self.every = every
        self.work = work
        self.due = 0.0

    def run(self) -> None:
        started = time.monotonic()
        has_more = self.work()
        finished = time.monotonic()
        took = finished - started
        self.due = finished + (took if has_more else max(self.every, SHARE * took))


class Maintenance:
    """The sweeps of the queues that are served."""

    def __init__(self, using: str, plan: Plan) -> None:
        self._using = using
        self._plan = plan
        self._looked_at: dict[str, int] = {}
        self._told: dict[str, float] = {}
        self._chores = [Chore(2.0, self._sweep), Chore(1.0, self._sweep_untasked)]
        self._chores.append(Chore(10.0, self._sweep_events))
        self._events_until = 0

    def run_due(self) -> None:
        for chore in self._chores:
            if chore.due <= time.monotonic():
                chore.run()

    def run_all(self) -> None:
        """Everything, to the end, whether due or not: before a draining worker calls its queues empty."""
        self._looked_at.clear()
        self._events_until = 0
        for sweep in (self._sweep, self._sweep_untasked, self._sweep_events):
            while sweep():
                pass

    def _sweep(self) -> bool:
        has_more = False
        for queue in self._plan.queues:
            moved = sweeps.sweep(self._using, queue, tasks_only=queue not in self._plan.handled)
            has_more |= moved >= sweeps.BATCH
            if moved:
                logger.warning("Jobs of queue=%s expired or ran out of attempts: %s.", queue, moved)
        return has_more

    def _sweep_events(self) -> bool:
        after = self._events_until
        self._events_until, _ = event_lines.sweep(self._using, after, skipping())
        return self._events_until > 0

    def _sweep_untasked(self) -> bool:
        for queue in self._plan.queues:
            if queue in self._plan.handled:
                continue
            after = self._looked_at.get(queue, 0)
            is_named = queue in self._plan.named
            self._looked_at[queue], left = sweeps.sweep_undecodable(self._using, queue, after, bury=is_named)
            if left and self._told.get(queue, 0.0) <= time.monotonic():
                self._told[queue] = time.monotonic() + 60
                logger.warning(
                    "At least %s due jobs of queue=%s are no tasks; they are left for another program.",
                    left,
                    queue,
                )
        return any(self._looked_at.values())
