"""The atomic runs of a worker, and how the clerk and they keep out of each other's way."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import transaction

from alkstore_django import atomic_claims
from alkstore_django.envelopes import task_name
from alkstore_django.exceptions import TaskInterrupted
from alkstore_django.registry import declared
from alkstore_django.tasks import option, stored_name
from alkstore_django.turns import Outcome

from .gate import Gate
from .leases import Leases
from .reconciliation import is_settled

if TYPE_CHECKING:
    from .execution import Assignment

PATIENCE = 5.0
"""Seconds at most that the clerk waits for an atomic run, before it looks at what else there is to do."""

REST = 0.1
"""Seconds at most between two atomic runs where others have to wait for both, else a quarter of a run: in a
shorter pause nobody would find the file free, since SQLite looks every 0.1 s in the end."""

UNWINDING = 2.0
"""Seconds that a run has to come to its end, once it was cut off."""

MOST_WAITING = 32
"""Atomic jobs that may wait for the only writer while others are claimed."""


class AtomicRuns:
    """A run locks the row of its job until its commit; where the database has one writer, everything.

    So the clerk leaves its claim alone meanwhile, and with one writer hands out one atomic job at a time
    and takes its own turns in between.
    """

    def __init__(self, using: str, leases: Leases, own_visibility: Callable[[Any], int]) -> None:
        self.using = using
        self.own_visibility = own_visibility
        self._leases = leases
        self._gate = Gate()
        self._entrance = threading.Lock()
        self._waiting: deque[Assignment] = deque()
        self._handed_out: Any = None
        self._since = self._rest_until = 0.0
        self.patience = PATIENCE
        self.are_in_the_way = False
        """Whether the clerk has just waited for a run in vain."""
        self.given_up = False
        """Whether a run goes on that nobody waits for any more."""
        self._closed_at = math.inf
        self._declared = -1
        self._atomic: frozenset[str] = frozenset()

    @cached_property
    def has_one_writer(self) -> bool:
        return atomic_claims.has_one_writer(self.using)

    # -- for the runs -----------------------------------------------------------------------------

    @contextmanager
    def run(self, assignment: Assignment) -> Iterator[Callable[[], None]]:
        """Around the transaction of a run. Yields what to call when it is committed."""
        if not self.has_one_writer:
            self._enter(assignment)
            yield _nothing
        else:
            with self._gate.passed() as leave:
                self._enter(assignment)
                yield leave or _nothing

    def transaction(self) -> AbstractContextManager[None]:
        """Of a run."""
        return transaction.atomic(using=self.using, durable=True)

    def _enter(self, assignment: Assignment) -> None:
        """From here on until its outcome is settled the clerk lets the claim alone."""
        with self._entrance:
            if self._closed_at < math.inf:
                raise TaskInterrupted("the worker ends")
            assignment.hold.is_locked = True
            self._leases.locked.add(assignment.claim.key)

    def close(self) -> list[Any]:
        """Let no run begin any more; the claims of those that go on, or are not settled yet."""
        with self._entrance:
            self._closed_at = min(self._closed_at, time.monotonic())
        self.patience = UNWINDING
        return self._leases.of(self._leases.locked)

    @property
    def may_unwind(self) -> bool:
        """Whether those that go on have not been cut off yet, or still have time to come to their end."""
        return time.monotonic() < self._closed_at + UNWINDING

    # -- for the clerk ----------------------------------------------------------------------------

    @contextmanager
    def between(self) -> Iterator[bool]:
        """Around a turn of the clerk; yields whether it may be taken.

        No run begins meanwhile: a row that it has just locked would hold up a renewal. With one writer none
        goes on either; if one does not come to an end, the turn has to wait for another time.
        """
        if not self.has_one_writer:
            with self._entrance:
                yield True
            return
        with self._gate.passed(first=True, timeout=self.patience) as leave:
            self.are_in_the_way = leave is None
            yield leave is not None

    def line_up(self, assignments: Sequence[Assignment]) -> list[Assignment]:
        """What may be handed out at once; with one writer, atomic jobs wait here for ``next``."""
        names = self._names()
        if not names or not self.has_one_writer:
            return list(assignments)
        at_once: list[Assignment] = []
        for each in assignments:
            is_atomic = task_name(each.claim.payload) in names
            (self._waiting if is_atomic else at_once).append(each)
        return at_once

    def _names(self) -> frozenset[str]:
        tasks = declared()
        if self._declared != len(tasks):
            self._declared = len(tasks)
            self._atomic = frozenset(stored_name(each) for each in tasks if option(each, "atomic"))
        return self._atomic

    def next(self) -> list[Assignment]:
        """The next atomic job, once the one before it is settled and others have had time to write."""
        now = time.monotonic()
        if self._handed_out is not None and not self._leases.is_holding(self._handed_out):
            self._rest_until = now + min(REST, (now - self._since) / 4)
            self._handed_out = None
        if not self._waiting or self._handed_out is not None or now < self._rest_until:
            return []
        assignment = self._waiting.popleft()
        self._handed_out, self._since = assignment.claim, now
        return [assignment]

    def next_due(self) -> float:
        """Seconds until the next one may be handed out; infinite if something else decides that."""
        if not self._waiting or self._handed_out is not None:
            return math.inf
        return max(0.0, self._rest_until - time.monotonic())

    def take_back(self, claims: Iterable[Any] | None = None) -> list[Any]:
        """The claims (of ``claims``) that wait here; they will not be handed out."""
        waiting = [assignment.claim for assignment in self._waiting]
        wanted = waiting if claims is None else list(claims)
        taken = [claim for claim in waiting if claim in wanted]
        self._waiting = deque(each for each in self._waiting if each.claim not in taken)
        return taken

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """Write those that their runs could not write, whatever time has passed: nobody could renew a claim
        meanwhile, and nobody take it before the run was over."""
        for outcome in outcomes:
            if not outcome.is_written and outcome.claim.key in self._leases.locked:
                outcome.is_written = atomic_claims.settle(self.using, outcome)

    def not_settled(self, lost: Sequence[Any]) -> list[Any]:
        """Of lost claims those that are not simply done: the answer to a run's commit may have been lost."""
        locked = self._leases.locked
        return [claim for claim in lost if claim.key not in locked or not is_settled(self.using, claim)]

    @property
    def are_many(self) -> bool:
        """Whether so many wait for the only writer that nothing more is to be claimed."""
        return len(self._waiting) >= MOST_WAITING


def _nothing() -> None:
    pass
