"""Numbers that were given and have not been seen: they may still come, when their transactions commit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

MOST = 1_000
"""Gaps that are remembered; beyond them the ones that were found first are given up."""


@dataclass(slots=True)
class Gap:
    """The numbers from ``first`` to ``last``, missed since ``since`` (monotonic seconds). ``writers`` are
    those who may still bring them, ``None`` before anybody has asked; ``is_pending``: one was seen that is
    not committed."""

    first: int
    last: int
    since: float
    writers: frozenset[str] | None = None
    is_pending: bool = False


class Gaps:
    """Gaps by number; they never overlap."""

    def __init__(self) -> None:
        self._gaps: list[Gap] = []

    def __iter__(self) -> Iterator[Gap]:
        return iter(self._gaps)

    def __len__(self) -> int:
        return len(self._gaps)

    def add(self, first: int, last: int, since: float) -> None:
        """Miss the numbers from ``first`` to ``last``, above all that are missed so far."""
        self._gaps.append(Gap(first, last, since))

    def limit(self) -> int:
        """Give up the oldest ones beyond ``MOST``; how many."""
        surplus = len(self._gaps) - MOST
        if surplus > 0:
            given_up = sorted(self._gaps, key=lambda gap: (gap.is_pending, gap.since, gap.first))[:surplus]
            gone = {gap.first for gap in given_up}
            self._gaps = [gap for gap in self._gaps if gap.first not in gone]
        return max(0, surplus)

    def add_missing(self, seen: Iterable[int], first: int, last: int, since: float) -> None:
        """Miss the numbers from ``first`` to ``last`` that are not in ``seen``, which rises."""
        for number in seen:
            if number > first:
                self.add(first, number - 1, since)
            first = number + 1
        if first <= last:
            self.add(first, last, since)

    def fill(self, numbers: Iterable[int]) -> None:
        """These have come."""
        come = sorted(numbers)
        if come:
            self._gaps = [piece for gap in self._gaps for piece in _without(gap, come)]

    def keep(self, is_kept: Callable[[Gap], bool]) -> None:
        self._gaps = [gap for gap in self._gaps if is_kept(gap)]


def _without(gap: Gap, come: list[int]) -> Iterator[Gap]:
    first = gap.first
    for number in come[bisect_left(come, gap.first) : bisect_right(come, gap.last)]:
        if number > first:
            yield replace(gap, first=first, last=number - 1)
        first = number + 1
    if first == gap.first:
        yield gap
    elif first <= gap.last:
        yield replace(gap, first=first)
