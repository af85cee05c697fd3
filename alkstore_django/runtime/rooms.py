"""How much more there is room for, for tasks of each kind, and what to claim for it.

Threads and coroutines have rooms of their own, so that neither waits for the other. A claim is told
apart only once it is there; what the tasks declared for a queue are says what to expect of it:

- a queue of one kind is asked for as many jobs as that kind has room for;
- a queue of both for as many as there is room for if the next ones are like the latest. While either
  room is full, up to ``LOOKAHEAD`` jobs of the full kind are held, to reach those of the other kind
  behind them; for at most ``STALL`` (``pools``), then they are put back, and the queue is left alone for
  a while, longer from time to time, until there is room.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from alkstore_django.turns import Outcome, Wish

from .executors import Executors
from .kinds import Kind
from .plan import Plan
from .pools import STALL
from .prefetch import Prefetch

LOOKAHEAD = 20
"""Jobs that may wait for a full room while there is room of the other kind."""

PATIENCE = (1.0, 30.0)
"""Seconds for which a queue of both kinds is left alone: the first time, and at most."""


@dataclass(frozen=True, slots=True)
class Order:
    """Up to ``room`` jobs, by the order of ``wishes``."""

    kind: Kind
    room: int
    wishes: Sequence[Wish]


NOTHING = Order(Kind.SYNC, 0, ())


class Rooms:
    """The rooms of one worker."""

    def __init__(self, plan: Plan, executors: Executors, prefetch: int) -> None:
        self._plan = plan
        self._executors = executors
        self._prefetch = Prefetch(executors.threads.size, prefetch)
        self._closed = dict.fromkeys(Kind, 0.0)
        self._patience = dict.fromkeys(Kind, PATIENCE[0])
        self._overfull_since: dict[Kind, float] = {}
        self._last = Kind.ASYNC
        self.promising = set(Kind)
        """For which there is reason to believe that there is more to claim."""

    def free(self, kind: Kind) -> int:
        """How many more jobs of that kind could be claimed."""
        pool = self._executors.pools[kind]
        return (self._prefetch.size if kind is Kind.SYNC else pool.size) - pool.held()

    def orders(self, most: float = math.inf) -> list[Order]:
        """What to claim, one order for a turn, the one whose turn it is first. Without room none."""
        free = {kind: self.free(kind) for kind in Kind}
        self._patience.update((kind, PATIENCE[0]) for kind in Kind if free[kind] > 0)
        wishes: dict[Kind, list[Wish]] = {kind: [] for kind in self._by_turn()}
        for wish in self._plan.wishes(1):
            kinds = self._executors.kinds.of_queue(wish.queue)
            if (n := self._wanted(wish.queue, kinds, free)) > 0:
                lane = Kind.SYNC if Kind.SYNC in kinds else Kind.ASYNC
                wishes[lane].append(Wish(wish.queue, n, wish.visibility, wish.tasks_only))
        rooms = {kind: int(min(most, max((wish.n for wish in wishes[kind]), default=0))) for kind in wishes}
        return [Order(kind, rooms[kind], wishes[kind]) for kind in wishes if rooms[kind] > 0]

    def claimed(self, order: Order, n: int) -> None:
        """An order was carried out."""
        if not order.room:
            return
        self._last = order.kind
        if n == order.room:
            self.promising.add(order.kind)
        else:
            self.promising.discard(order.kind)

    def stalled(self) -> list[Kind]:
        """The kinds of which something has waited too long: since the last one began, or, of more than there
        is room for, at all."""
        now = time.monotonic()
        for kind in Kind:
            if self.free(kind) < 0:
                self._overfull_since.setdefault(kind, now)
            else:
                self._overfull_since.pop(kind, None)
        overfull = {kind for kind, since in self._overfull_since.items() if now - since >= STALL}
        return [kind for kind in Kind if kind in overfull or self._executors.pools[kind].stalls_in() == 0]

    def stalls_in(self) -> float:
        """Seconds until ``stalled`` may have something to tell; infinite while nothing waits."""
        now = time.monotonic()
        overfull = [max(0.0, since + STALL - now) for since in self._overfull_since.values()]
        return min(overfull + [pool.stalls_in() for pool in self._executors.pools.values()])

    def unloaded(self, kind: Kind) -> None:
        """What waited for room was put back."""
        if kind is Kind.SYNC:
            self._prefetch.forget()
        self._overfull_since.pop(kind, None)
        self._closed[kind] = time.monotonic() + self._patience[kind]
        self._patience[kind] = min(2 * self._patience[kind], PATIENCE[1])

    def opens_in(self) -> float:
        """Seconds until a queue that is left alone is asked again; infinite for none."""
        now = time.monotonic()
        return min((end - now for end in self._closed.values() if end > now), default=math.inf)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        kind, batches = self._executors.kind, self._executors.kinds.batches
        alone = (outcome for outcome in outcomes if outcome.claim.queue not in batches)
        self._prefetch.learn([outcome for outcome in alone if kind(outcome.claim) is Kind.SYNC])

    def _by_turn(self) -> tuple[Kind, Kind]:
        return (Kind.ASYNC, Kind.SYNC) if self._last is Kind.SYNC else (Kind.SYNC, Kind.ASYNC)

    def _wanted(self, queue: str, kinds: set[Kind], free: dict[Kind, int]) -> int:
        full = [kind for kind in kinds if free[kind] <= 0]
        if not full:
            share = self._executors.kinds.coroutine_share(queue)
            shares = {Kind.SYNC: 1 - share, Kind.ASYNC: share} if len(kinds) > 1 else dict.fromkeys(kinds, 1)
            n = max(1, int(min(free[kind] / max(shares[kind], 0.01) for kind in kinds)))
            return max(n, self._executors.kinds.batches.get(queue, 1))
        if len(full) == len(kinds) or time.monotonic() < self._closed[full[0]]:
            return 0
        return LOOKAHEAD - self._executors.pools[full[0]].waiting()
