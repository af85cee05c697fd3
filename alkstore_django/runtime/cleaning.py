"""Who deletes what is over, and when: one of the workers between its turns, or a command."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from django.db import DatabaseError, Error

from alkstore_django.election import Election
from alkstore_django.logs import get_logger
from alkstore_django.pruning import Pass
from alkstore_django.retention import rules

from .outage import TROUBLE

logger = get_logger("alkstore_django.worker")

EVERY = 300.0
"""Seconds between two passes."""

SHARE = 50
"""A pass that took t seconds is followed by ``SHARE`` * t without one: it takes 2 % of the time."""

LONGEST = 3600.0
"""Seconds between two passes at most: if the one who rests is killed, all have to wait for the end of it."""

EASE = 4
"""Within a pass: steps that took t seconds are followed by ``EASE`` * t for others."""

BURST = 0.005
"""Seconds for which steps follow each other: most only look, and find nothing."""

LOOK = 60.0
"""Seconds after which a worker looks again whether another is at it."""

BEGINS = 10.0
"""Seconds after the start of a worker: it has something better to do."""

TTL = 60
"""Seconds without a sign of life after which another goes on, in the middle of a pass."""

RENEWAL = 20.0


class Cleaning:
    """A worker's part in it, between turns and on the connection of its clerk. ``owner`` is its id."""

    def __init__(self, using: str, owner: str) -> None:
        self._using = using
        self._election = Election(using, owner)
        self._due = time.monotonic() + random.uniform(1.0, 2.0) * BEGINS  # noqa: S311 - no secret
        self._pass: Pass | None = None
        self._renewed = self._took = 0.0

    def run_due(self) -> None:
        """Do a little, if it is time. Raises what ends the connection."""
        if self.due_in() > 0:
            return
        started = time.monotonic()
        wait = self._work(started)
        self._took += time.monotonic() - started
        self._due = time.monotonic() + wait

    def due_in(self) -> float:
        """Seconds until there is something to do."""
        return max(0.0, self._due - time.monotonic())

    def end(self, *, is_reachable: bool) -> None:
        """Let another worker go on."""
        if is_reachable:
            try:
                self._election.release()
            except Error as error:
                logger.debug("The lock of the maintenance could not be given back: %s", error)

    def _work(self, now: float) -> float:
        """Seconds until it is time again."""
        if self._pass is None or now - self._renewed > RENEWAL:
            if not self._election.hold(TTL):
                self._pass = None
                return LOOK * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
            self._renewed = now
        if self._pass is None:
            self._pass, self._took = Pass(self._using, rules(self._using)), 0.0
        while self._step(self._pass):
            if (took := time.monotonic() - now) > BURST:
                return took * EASE
        return self._rest(self._pass, now)

    def _step(self, steps: Pass) -> bool:
        kind = steps.kind
        try:
            return steps.step()
        except TROUBLE:
            raise
        except DatabaseError as error:
            logger.warning("The maintenance of %s failed: %s", kind, error)
            steps.skip()
            return steps.kind is not None

    def _rest(self, steps: Pass, since: float) -> float:
        """After a pass: nobody else begins one meanwhile."""
        self._pass = None
        if told := ", ".join(f"{kind} {count}" for kind, count in steps.deleted.items() if count):
            logger.info("Deleted what was over: %s.", told)
        took = self._took + time.monotonic() - since
        rest = min(max(EVERY, SHARE * took), LONGEST)
        self._election.hold(math.ceil(rest) + TTL)
        return rest


def clean(
    steps: Pass, told: Callable[[str], object], guarded: Callable[[], AbstractContextManager[None]]
) -> None:
    """Go to the end of a pass, with breaks for others. Each step is taken within ``guarded()``; ``told`` is
    given the kind after it."""
    while kind := steps.kind:
        started = time.monotonic()
        with guarded():
            steps.step()
        told(kind)
        time.sleep(min(0.1, time.monotonic() - started))
