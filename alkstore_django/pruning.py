"""Deleting what is over, a little at a time: each step is one short transaction, or only a look.

Whoever calls takes breaks in between (``runtime.cleaning``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from . import event_lines, inbox, locks, pauses, rate_limits, sweeps, workers
from .models.pruning import FIRST
from .retention import Ends, Rule, pruning

LIMIT = 0.02
"""Seconds that a step should take at most: as long the file of SQLite is locked, and the clerk busy."""

MOST = 500
"""Rows that a step deletes at most."""


class Step(NamedTuple):
    """What a step has deleted; ``is_last``: of this kind nothing more is over."""

    deleted: int
    is_last: bool


class Pace:
    """How much a step takes on, by how long the last ones took: disks differ, and so do rows.

    It begins with little and doubles it as long as a step takes less than half of ``LIMIT``; one that takes
    longer than that halves it, but not below what it began with: on a busy machine, or where each commit
    takes its time, less is no faster. ``rows`` are looked at, up to ``room`` bytes are deleted.
    """

    ROWS, MOST_ROWS = 200, 10_000
    ROOM, MOST_ROOM = 50_000, 4_000_000

    def __init__(self) -> None:
        self.rows = self.ROWS
        self.room = self.ROOM

    def looked(self, seconds: float) -> None:
        self.rows = _fitted(self.rows, seconds, self.ROWS, self.MOST_ROWS)

    def deleted(self, seconds: float) -> None:
        self.room = _fitted(self.room, seconds, self.ROOM, self.MOST_ROOM)


def _fitted(size: int, seconds: float, low: int, high: int) -> int:
    if seconds > LIMIT:
        return max(low, size // 2)
    return min(high, size * 2) if seconds < LIMIT / 2 else size


class Walk:
    """The rows of one kind, from the first key to the last."""

    def __init__(self, using: str, rule: Rule, most: int = MOST) -> None:
        self._rows = pruning(using)
        self._kind = rule.kind
        self._params = {} if rule.age is None else {"age": rule.age}
        self._most = most
        self._pace = Pace()
        self._after = FIRST

    def step(self) -> Step:
        started, pace = time.monotonic(), self._pace
        found = self._rows.look(self._kind, self._after, pace.rows, self._most, pace.room, **self._params)
        looked = time.monotonic()
        pace.looked(looked - started)
        self._after = found.upto
        if not found.keys:
            return Step(0, found.is_last)
        deleted = self._rows.delete(self._kind, found.keys, **self._params)
        took = time.monotonic() - looked
        if found.is_heavy or took > LIMIT:
            pace.deleted(took)
        # What others have locked would be found again, where an index and not a key leads there.
        return Step(deleted, found.is_last or not (deleted or found.upto > FIRST))


class KeyWalk:
    """The keys of unique tasks."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._after = ""

    def step(self) -> Step:
        self._after, deleted = sweeps.sweep_keys(self._using, self._after)
        return Step(deleted, not self._after)


class Sweep:
    """A kind of which there are few, and which looks after itself; until nothing is found any more."""

    def __init__(self, using: str, sweep: Callable[[str], int]) -> None:
        self._using = using
        self._sweep = sweep

    def step(self) -> Step:
        deleted = self._sweep(self._using)
        return Step(deleted, not deleted)


class Steps(Protocol):
    def step(self) -> Step: ...


def walk(using: str, rule: Rule, most: int = MOST) -> Steps:
    """What deletes, step by step, all that is over of one kind. A step raises what the database raises."""
    if rule.kind == "keys":
        return KeyWalk(using)
    if rule.kind == "inbox":
        return Sweep(using, partial(inbox.sweep, age=rule.age or 0))
    if rule.kind in SWEEPS:
        return Sweep(using, SWEEPS[rule.kind])
    return Walk(using, rule, most)


SWEEPS: dict[str, Callable[[str], int]] = {
    "locks": locks.sweep_expired,
    "rates": rate_limits.sweep_old,
    "lines": event_lines.sweep_keys,
    "workers": workers.forget_stale,
    "pauses": pauses.forget_ended,
}

COUNTS: dict[str, Callable[[str], int]] = {
    "locks": locks.count_expired,
    "rates": rate_limits.count_old,
    "keys": sweeps.count_keys,
    "lines": event_lines.count_keys,
    "workers": workers.count_stale,
    "pauses": pauses.count_ended,
}


def count(using: str, rule: Rule, among: Sequence[Rule] = ()) -> int:
    """How many rows of a kind ``walk`` would delete by now, after it has deleted those of ``among``."""
    if rule.is_kept:
        return 0
    if rule.kind == "inbox":
        return inbox.count_old(using, rule.age or 0)
    if rule.kind in COUNTS:
        return COUNTS[rule.kind](using)
    params = {} if rule.age is None else {"age": rule.age}
    dead = next((each for each in among if each.kind == "dead" and not each.is_kept), None)
    if rule.ends == Ends.ORPHAN and dead and dead.age is not None:
        params["dead_age"] = dead.age
    return pruning(using).count_over(rule.kind, **params)


class Pass:
    """All that is over by some rules, one kind after the other."""

    def __init__(self, using: str, rules: Sequence[Rule], most: int = MOST) -> None:
        self._using = using
        self._most = most
        self._left = [rule for rule in rules if not rule.is_kept]
        self._steps: Steps | None = None
        self.deleted = dict.fromkeys((rule.kind for rule in rules), 0)
        """Rows by kind, so far."""

    @property
    def kind(self) -> str | None:
        """What the next step is about; ``None`` at the end."""
        return self._left[0].kind if self._left else None

    def step(self) -> bool:
        """Take a step; whether another is left. What the database raises ends nothing: call it again."""
        if not self._left:
            return False
        self._steps = self._steps or walk(self._using, self._left[0], self._most)
        deleted, is_last = self._steps.step()
        self.deleted[self._left[0].kind] += deleted
        if is_last:
            self.skip()
        return bool(self._left)

    def skip(self) -> None:
        """Go on with the next kind."""
        del self._left[0]
        self._steps = None
