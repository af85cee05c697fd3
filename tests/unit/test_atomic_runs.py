"""How atomic jobs stand in line before a database that has one writer."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from alkstore_django.envelopes import Envelope
from alkstore_django.runtime import atomic_runs
from alkstore_django.runtime.atomic_runs import MOST_WAITING, REST, AtomicRuns
from tests.app import atomic, tasks


class Held(list[Any]):
    """The claims that a worker holds."""

    locked: frozenset[Any] = frozenset()

    def is_holding(self, claim: Any) -> bool:
        return any(each is claim for each in self)


class Line:
    """The runs of one worker, by numbers, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_one_writer: bool = True) -> None:
        self.time = 100.0
        monkeypatch.setattr(atomic_runs, "time", SimpleNamespace(monotonic=lambda: self.time))
        self.held = Held()
        self.runs = AtomicRuns("default", self.held, lambda claim: 60)  # type: ignore[arg-type]
        self.runs.__dict__["has_one_writer"] = has_one_writer

    def line_up(self, task: Any, *numbers: int) -> list[int]:
        """What is handed out at once."""
        payload = Envelope(task.module_path, [], {}).seal()
        claims = [SimpleNamespace(key=(number, 1), payload=payload) for number in numbers]
        self.held += claims
        return self._numbers(self.runs.line_up([SimpleNamespace(claim=claim) for claim in claims]))  # type: ignore[misc]

    def next(self) -> list[int]:
        return self._numbers(self.runs.next())

    def settle(self, number: int) -> None:
        self.held[:] = [claim for claim in self.held if claim.key[0] != number]

    def _numbers(self, assignments: list[Any]) -> list[int]:
        return [each.claim.key[0] for each in assignments]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(monkeypatch)


def test_one_at_a_time_and_others_not_held_up(line: Line) -> None:
    assert line.line_up(atomic.nap, 1, 2) == []
    assert line.line_up(tasks.nap, 3) == [3]
    assert line.next() == [1]
    assert (line.next(), line.runs.next_due()) == ([], math.inf)
    line.settle(1)
    assert line.next() == [2]
    line.settle(2)
    assert (line.next(), line.runs.next_due()) == ([], math.inf)


@pytest.mark.parametrize(("took", "rest"), [(0.2, 0.05), (10.0, REST)])
def test_others_may_write_in_between(line: Line, took: float, rest: float) -> None:
    line.line_up(atomic.nap, 1, 2)
    assert line.next() == [1]
    line.time += took
    line.settle(1)
    assert line.next() == []
    assert line.runs.next_due() == pytest.approx(rest)
    line.time += line.runs.next_due() + 0.001
    assert line.next() == [2]


def test_what_waits_can_be_taken_back(line: Line) -> None:
    line.line_up(atomic.nap, 1, 2, 3)
    assert line.next() == [1]
    assert [claim.key for claim in line.runs.take_back(line.held[1:2])] == [(2, 1)]
    assert [claim.key for claim in line.runs.take_back()] == [(3, 1)]
    line.settle(1)
    assert line.next() == []


def test_one_that_comes_back_at_once(line: Line) -> None:
    """It could not begin, was given back, and claimed in the same turn: the same attempt of the same job."""
    line.line_up(atomic.nap, 1, 2)
    assert line.next() == [1]
    line.settle(1)
    line.line_up(atomic.nap, 1)
    assert line.next() == [2]
    line.settle(2)
    assert line.next() == [1]


def test_there_is_an_end_to_the_line(line: Line) -> None:
    line.line_up(atomic.nap, *range(MOST_WAITING - 1))
    assert not line.runs.are_many
    line.line_up(atomic.nap, MOST_WAITING)
    assert line.runs.are_many


def test_elsewhere_there_is_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(monkeypatch, has_one_writer=False)
    assert line.line_up(atomic.nap, 1, 2) == [1, 2]
    assert line.next() == []
