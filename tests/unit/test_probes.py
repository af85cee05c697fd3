"""Queues without tasks are looked at the more seldom the longer a look takes."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from alkstore_django import turns
from alkstore_django.runtime import probes
from alkstore_django.runtime.probes import EVERY, Probes


class Clock:
    """Time that passes only in looks, ``cost`` seconds in each, and when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time, self.cost = 100.0, 0.0
        self.tasks: set[str] = set()
        self.looks: list[str] = []
        monkeypatch.setattr(probes, "time", SimpleNamespace(monotonic=lambda: self.time))
        monkeypatch.setattr(turns, "has_task", self.look)

    def look(self, using: str, queue: str) -> bool:
        self.looks.append(queue)
        self.time += self.cost
        return queue in self.tasks

    def looked(self) -> list[str]:
        looks, self.looks = self.looks, []
        return looks


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_what_is_known_is_believed_for_a_while(clock: Clock) -> None:
    clock.tasks = {"mixed"}
    known = Probes("default")
    for _ in range(2):
        assert known.taskless(["raw", "mixed"], now=False) == {"raw"}
    assert clock.looked() == ["raw", "mixed"]
    assert known.due_in() == EVERY
    clock.tasks = {"raw"}
    clock.time += EVERY
    assert known.due_in() == 0
    assert known.taskless(["raw", "mixed"], now=False) == {"mixed"}
    assert clock.looked() == ["raw", "mixed"]


def test_long_looks_are_rare(clock: Clock) -> None:
    known = Probes("default")
    clock.cost = 1.0
    known.taskless(["raw"], now=False)
    assert known.due_in() == EVERY + 20
    clock.cost = 0.0
    clock.time += 20
    known.taskless(["raw"], now=False)
    assert clock.looked() == ["raw"]
    known.taskless(["raw"], now=True)
    assert clock.looked() == ["raw"]
    assert known.due_in() == EVERY


def test_queues_that_are_gone_are_forgotten(clock: Clock) -> None:
    known = Probes("default")
    known.taskless(["raw"], now=False)
    assert known.taskless([], now=False) == frozenset()
    assert known.due_in() == math.inf
