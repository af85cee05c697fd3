"""``drain``: run what is due, in the test itself."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timedelta

from asgiref.sync import sync_to_async

from alkstore_django import served
from alkstore_django.values import whole

from .inline import InlineWorker
from .ran import Ran
from .travelling import next_due, seconds_until, travel

ENDLESS = 1_000
"""Attempts after which a drain without a limit has no end."""


def drain(
    queue: str | Iterable[str] | None = None,
    *,
    limit: int | None = None,
    until: datetime | timedelta | int | float | None = None,
    using: str | None = None,
    propagate: bool = False,
) -> list[Ran]:
    """Run every job that is due, and those that these enqueue; what was run, in order.

    In the calling thread and its transaction: in a ``TestCase`` nothing is committed. Claims, runs and
    writes the end of each as a worker does, in the order of a worker with one thread.

    ``queue``
        One or several; default: all but outboxes. What is paused is left.
    ``limit``
        At most so many attempts.
    ``until``
        Let time pass up to that moment (``datetime``), or for so long (``timedelta`` or seconds), and run
        what becomes due on the way, retries included: ``until=timedelta(days=1)``. It is ``travel``, from job
        to job. Left out, what is due later stays.
    ``using``
        The alias of one database; default: each that holds jobs of ours.
    ``propagate``
        Whether to raise what a task raised in its last attempt, once that is written.

    A task that fails raises nothing here otherwise: look at ``error`` and ``ended`` of what is returned.
    ``KeyboardInterrupt`` goes through. Raises ``AssertionError`` after 1,000 attempts without a ``limit``,
    and ``TypeError`` and ``ValueError`` for bad arguments. In async tests: ``await adrain(...)``.
    """
    if limit is not None:
        limit = whole("limit", limit, 0)
    wanted = [queue] if isinstance(queue, str) else None if queue is None else list(queue)
    aliases = served.databases() if using is None else [using]
    found: list[Ran] = []
    with ExitStack() as stack:
        drains = [Drain(stack.enter_context(InlineWorker(alias)), wanted, until) for alias in aliases]
        while limit is None or len(found) < limit:
            one = next((ran for each in drains if (ran := each.run_one()) is not None), None)
            if one is None:
                break
            found.append(one)
            if propagate and one.error is not None and one.ended != "retried":
                raise one.error
            if limit is None and len(found) >= ENDLESS:
                raise AssertionError(
                    f"{ENDLESS} attempts, and still no end: does {one.task} enqueue itself? Give a limit."
                )
        else:
            return found
        for each in drains:
            each.arrive()
    return found


adrain = sync_to_async(drain)


class Drain:
    """Of one database, and the time that is left to let pass in it."""

    def __init__(
        self,
        worker: InlineWorker,
        wanted: list[str] | None,
        until: datetime | timedelta | int | float | None,
    ) -> None:
        self._worker = worker
        self._wanted = wanted
        self._left = None if until is None else seconds_until(until, worker.using)

    def run_one(self) -> Ran | None:
        """Run the next job, after so much time as it takes; ``None`` if there is none in time."""
        while True:
            queues = self._worker.queues(self._wanted)
            claim = self._worker.claim_next(queues)
            if claim is not None:
                return self._worker.run(claim)
            self._worker.sweep(queues)
            wait = None if self._left is None else next_due(self._worker.using, queues)
            if wait is None or self._left is None or wait > self._left:
                return None
            self._pass(max(wait, 1))  # at least one: what lapses has to be over

    def arrive(self) -> None:
        """Let the rest of the time pass."""
        if self._left:
            self._pass(self._left - 1)
            self._worker.sweep(self._worker.queues(self._wanted))

    def _pass(self, seconds: int) -> None:
        if seconds > 0:
            travel(seconds, using=self._worker.using)
            self._left = max(0, (self._left or 0) - seconds)
