"""Which of the served queues are paused, as a worker knows it."""

from __future__ import annotations

import math
import time

from alkstore_django.logs import get_logger
from alkstore_django.pauses import paused

from .plan import Plan

logger = get_logger("alkstore_django.worker")

EVERY = 0.5
"""Seconds between two looks, so that a pause is in force within a second."""


class Pauses:
    """Looks before the worker claims, and takes paused queues out of the plan."""

    def __init__(self, using: str, plan: Plan) -> None:
        self._using = using
        self._plan = plan
        self._next_look = 0.0

    def look(self) -> bool:
        """Look, if the last time was long enough ago; whether a pause began."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        found = {pause.queue: pause for pause in paused(self._using)}
        self._next_look = now + EVERY
        before, self._plan.paused = self._plan.paused, frozenset(found)
        began = [name for name in self._plan.queues if name in self._plan.paused - before]
        for name in began:
            logger.info("Queue %s is paused%s.", name, f" by {found[name].by}" if found[name].by else "")
        for name in self._plan.queues:
            if name in before - self._plan.paused:
                logger.info("Queue %s is resumed.", name)
        return bool(began)

    def next_look(self) -> float:
        """Seconds until a paused queue may go on; infinite while none is paused: who claims looks before."""
        if self._plan.paused.isdisjoint(self._plan.queues):
            return math.inf
        return max(0.0, self._next_look - time.monotonic())

    def tell_what_is_left(self) -> None:
        for name in self._plan.queues:
            if name in self._plan.paused:
                logger.warning("Queue %s is paused; what it holds was left alone.", name)
