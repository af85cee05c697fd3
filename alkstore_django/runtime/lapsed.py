"""Jobs whose worker vanished, and which may be what made it vanish."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alkstore_django import turns
from alkstore_django.logs import get_logger

from .lookout import Lookout
from .plan import Plan

logger = get_logger("alkstore_django.worker")

BATCH = 500
"""Lapsed jobs without a future that one transaction buries."""

EVERY = 1.0

WAIT = 0.5
"""Seconds: a turn that takes longer had to wait for the database."""

PATIENCE = (2.0, 32.0)
"""Seconds that a busy worker claims nothing, to get empty for a lapsed job: the first time, and the last."""


class LapsedJobs:
    """Claimed one by one, each for an otherwise empty process: if it kills its worker again, it takes
    no other job with it. While there are none they are looked for every ``EVERY`` seconds at most.

    Where something runs that never seems to end, they are claimed beside it in the end, still one by one.
    """

    def __init__(self, using: str, worker_id: str, plan: Plan, lookout: Lookout) -> None:
        self._using = using
        self._worker_id = worker_id
        self._plan = plan
        self._lookout = lookout
        self._due = 0.0
        self._others_first = False
        self._has_given_time = False
        self.may_be_more = False
        """Whether the last look or claim found some: the next one need not wait for the timer."""
        self._patience = PATIENCE[0]
        self._waits_since: float | None = None
        self.need_not_wait = False
        """Whether the worker has waited long enough for its process to get empty."""

    @contextmanager
    def judged_later(self) -> Iterator[None]:
        """Around a turn: if it fails, or had to wait, the workers of other claims had to wait as well, and
        get the time to renew them; once, also where every turn is slow."""
        started = time.monotonic()
        try:
            yield
        finally:
            finished = time.monotonic()
            if sys.exc_info()[0] is not None or (finished - started > WAIT and not self._has_given_time):
                self._has_given_time = True
                self._due = max(self._due, finished + EVERY)

    def are_there(self) -> bool:
        if self._others_first or time.monotonic() < self._due:
            self._others_first = False
            return False
        self._has_given_time = False
        found = self._lookout.sees_lapsed() and turns.has_lapsed(self._using, self._plan.wishes(BATCH))
        self.may_be_more = found
        if not found:
            self._due = time.monotonic() + EVERY
            self._content()
        return found

    @property
    def is_waiting(self) -> bool:
        """Whether the worker claims nothing, so that its process gets empty."""
        return self._waits_since is not None

    def next_look(self) -> float:
        """Seconds until they are looked for again, or until the others have their turn."""
        due = self._due if self._waits_since is None else self._waits_since + self._patience
        return max(0.0, due - time.monotonic())

    def may_wait(self) -> bool:
        """Whether the worker should claim nothing, so that its process gets empty.

        When that takes too long, the others get as much time as was spent on waiting, and the next
        wait is twice as long, up to the last: the lapsed job gets its turn, and long tasks do not leave
        threads idle all that time. What is not to be run again need not wait.
        """
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
            for wish in self._plan.wishes(BATCH):
                turns.bury_hopeless(self._using, wish)
        if now - self._waits_since < self._patience:
            return True
        if self._patience >= PATIENCE[1]:
            self.need_not_wait = True
            return True
        self._waits_since = None
        self.may_be_more = False
        self._due = now + self._patience
        self._patience *= 2
        return False

    def claim_one(self, *, beside_others: bool = False) -> Any | None:
        """Claim a lapsed job; those that expired or have no attempt left become dead letters."""
        self._waits_since = None
        if not beside_others:
            self._content()
        for wish in self._plan.wishes(BATCH):
            claim = turns.reclaim_one(self._using, self._worker_id, wish)
            if claim is not None:
                logger.warning(
                    "Job id=%s of queue=%s: its worker vanished, attempt %s of %s begins.",
                    claim.id,
                    claim.queue,
                    claim.attempts,
                    claim.max_attempts,
                )
                return claim
        return None

    def rest(self) -> None:
        """Leave the next turn to the other jobs: lapsed ones starve nobody."""
        self._others_first = True

    def _content(self) -> None:
        self._patience, self._waits_since, self.need_not_wait = PATIENCE[0], None, False
