"""What an idle clerk knows of the tables, and how long it may sleep on it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from alkstore_django import looks
from alkstore_django.looks import Look
from alkstore_django.turns import Wish

from .plan import Plan
from .wake.base import Wake

LONGEST_REST = 0.25
"""Seconds at most between two claims of what is due and still cannot be had: others have it locked."""


class Lookout:
    """One look serves a turn: whether it may claim, whether claims have lapsed, when to look again.

    A look is kept until something is claimed or the next turn begins. The one that the clerk sleeps on
    is made after ``Wake.arm``, so that nothing which is committed later goes unheard.
    """

    def __init__(self, using: str, plan: Plan) -> None:
        self.wake = Wake()
        self._using = using
        self._plan = plan
        self._seen: Look | None = None
        self._seen_at = 0.0
        self._is_armed = False
        self._vain = 0

    def forget(self) -> None:
        """Time has passed, or the queues have changed."""
        self._seen = None
        self._is_armed = False

    def sees_claimable(self, wishes: Sequence[Wish]) -> bool:
        found = self._look().due_in(wishes) <= 0
        self.wake.learn(found)
        return found

    def sees_lapsed(self) -> bool:
        return self._look().lapses_in <= 0

    def claimed(self, wishes: Sequence[Wish], count: int) -> None:
        """So many were claimed of these."""
        was_due = self._seen is not None and self._seen.due_in(wishes) <= 0
        self._vain = self._vain + 1 if was_due and not count else 0
        self._seen = None

    def due_in(self, wishes: Sequence[Wish]) -> float:
        """Seconds until there is something to claim; 0 if there is now, unless that was tried in vain."""
        self._arm()
        due_in = self._look().due_in(wishes)
        if due_in <= 0:
            return min(LONGEST_REST, 0.005 * 2 ** min(self._vain, 8)) if self._vain else 0.0
        return max(0.0, due_in - self._age())

    def lapses_in(self) -> float:
        """Seconds until the claim of some worker lapses, unless it is renewed."""
        self._arm()
        return max(0.0, self._look().lapses_in - self._age())

    def _arm(self) -> None:
        if not self._is_armed:
            self.wake.arm()
            self._seen, self._is_armed = None, True

    def _look(self) -> Look:
        if self._seen is None:
            self._seen = looks.look(self._using, self._plan.wishes(1))
            self._seen_at = time.monotonic()
        return self._seen

    def _age(self) -> float:
        return time.monotonic() - self._seen_at
