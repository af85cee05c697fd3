"""The numbers that are missing, and what becomes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkstore_django import gaps
from alkstore_django.gaps import Gaps


def ranges(found: Gaps) -> list[tuple[int, int]]:
    return [(gap.first, gap.last) for gap in found]


@pytest.mark.parametrize(
    ("come", "left"),
    [
        ([], [(10, 14), (20, 20)]),
        ([9, 15, 21], [(10, 14), (20, 20)]),
        ([10], [(11, 14), (20, 20)]),
        ([14], [(10, 13), (20, 20)]),
        ([12], [(10, 11), (13, 14), (20, 20)]),
        ([20, 11, 13], [(10, 10), (12, 12), (14, 14)]),
        ([10, 11, 12, 13, 14, 20], []),
    ],
)
def test_fill(come: list[int], left: list[tuple[int, int]]) -> None:
    found = Gaps()
    found.add(10, 14, 1.0)
    found.add(20, 20, 2.0)
    found.fill(come)
    assert ranges(found) == left
    assert len(found) == len(left)


def test_the_pieces_know_what_the_gap_knew() -> None:
    found = Gaps()
    found.add(1, 3, 5.0)
    for gap in found:
        gap.writers, gap.is_pending = frozenset("w"), True
    found.fill([2])
    assert [(gap.since, gap.writers, gap.is_pending) for gap in found] == [(5.0, frozenset("w"), True)] * 2


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
def test_what_is_missing_is_missing_until_it_comes(seen: set[int], come: set[int]) -> None:
    found = Gaps()
    found.add_missing(sorted(seen), 1, 60, 0.0)
    found.fill(come)
    numbers = [number for first, last in ranges(found) for number in range(first, last + 1)]
    assert numbers == sorted(set(range(1, 61)) - seen - come)


def test_the_oldest_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of which there is a sign of life."""
    monkeypatch.setattr(gaps, "MOST", 3)
    found = Gaps()
    for number in range(6):
        found.add(number * 10, number * 10 + 5, float(number))
    next(iter(found)).is_pending = True
    assert found.limit() == 3
    assert ranges(found) == [(0, 5), (40, 45), (50, 55)]
    assert found.limit() == 0


def test_keep() -> None:
    found = Gaps()
    found.add(1, 2, 1.0)
    found.add(4, 5, 2.0)
    found.keep(lambda gap: gap.since > 1)
    assert ranges(found) == [(4, 5)]
