"""When a worker looks for jobs whose worker vanished."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import OperationalError

from alkstore_django import turns
from alkstore_django.runtime import lapsed
from alkstore_django.runtime.lapsed import EVERY, WAIT, LapsedJobs


class Look:
    """One worker's looks, by a clock that stands still until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time, self.looks = 100.0, 0
        monkeypatch.setattr(lapsed, "time", SimpleNamespace(monotonic=lambda: self.time))
        monkeypatch.setattr(turns, "has_lapsed", self.has_lapsed)
        plan = SimpleNamespace(wishes=lambda room: [])
        lookout = SimpleNamespace(sees_lapsed=lambda: True)
        self.jobs = LapsedJobs("default", "w", plan, lookout)  # type: ignore[arg-type]

    def has_lapsed(self, using: str, wishes: object) -> bool:
        self.looks += 1
        return True

    def turn(self, seconds: float = 0.0, *, fails: bool = False) -> int:
        """How often a turn of so many seconds has looked; it looks before it waits."""
        before = self.looks
        with self.jobs.judged_later():
            self.jobs.are_there()
            self.time += seconds
            if fails:
                raise OperationalError
        return self.looks - before


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    return Look(monkeypatch)


def test_quick_turns_look_as_long_as_there_are_some(look: Look) -> None:
    assert [look.turn(0.01) for _ in range(3)] == [1, 1, 1]


def test_after_a_turn_that_waited_others_have_time_to_renew(look: Look) -> None:
    assert look.turn(WAIT + 0.1) == 1
    assert look.turn() == 0
    look.time += EVERY
    assert look.turn() == 1


def test_after_a_turn_that_failed_too(look: Look) -> None:
    with pytest.raises(OperationalError):
        look.turn(fails=True)
    assert look.turn() == 0
    look.time += EVERY
    assert look.turn() == 1


def test_where_every_turn_is_slow_there_are_looks_all_the_same(look: Look) -> None:
    assert [look.turn(0.6) for _ in range(7)] == [1, 0, 0, 1, 0, 0, 1]


def test_beside_what_never_ends_it_is_claimed_in_the_end(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    while not look.jobs.need_not_wait:
        began = look.time
        while look.jobs.may_wait() and not look.jobs.need_not_wait:
            look.time += 0.5
        waits.append(look.time - began)
        look.time += look.jobs.next_look()
    assert waits == [2, 4, 8, 16, 32]

    assert look.jobs.next_look() == 0
    assert look.jobs.claim_one(beside_others=True) is None
    assert look.jobs.need_not_wait, "the next one need not wait, either"
    assert not look.jobs.is_waiting
    assert look.jobs.claim_one() is None
    assert not look.jobs.need_not_wait
