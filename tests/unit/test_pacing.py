from __future__ import annotations

import pytest

from alkstore_django.runtime import pacing
from alkstore_django.runtime.pacing import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(pacing, "time", found)
    return found


def work(clock: Clock, pace: Pace, seconds: float, took: float, most: int = 100) -> int:
    """How many things are done in so many seconds, if a piece takes ``took``."""
    done, end = 0, clock.now + seconds
    while clock.now < end:
        n = pace.size(most)
        clock.now += took
        clock.now += pace.rest(n, took)
        done += n
    return done


@pytest.mark.parametrize("rate", [0.5, 1, 7, 50, 1_000, 5_000])
@pytest.mark.parametrize("took", [0.0, 0.001, 0.012])
def test_the_rate_is_kept(clock: Clock, rate: float, took: float) -> None:
    done = work(clock, Pace(rate), 100, took)
    assert done == pytest.approx(rate * 100, rel=0.02, abs=1)


def test_others_get_their_turn_even_if_it_cannot_be_kept(clock: Clock) -> None:
    assert work(clock, Pace(5_000), 15, took=0.05) == pytest.approx(15 / 0.075 * 100, abs=100)


@pytest.mark.parametrize(("rate", "size"), [(None, 100), (5_000, 100), (500, 50), (10, 1), (0.01, 1)])
def test_small_pieces(rate: float | None, size: int) -> None:
    assert Pace(rate).size(100) == size
    assert Pace(rate).size(0) == 0


def test_after_a_stall_a_moment_is_made_good_and_no_more(clock: Clock) -> None:
    pace = Pace(1_000)
    work(clock, pace, 10, took=0.001)
    clock.now += 60
    began, done = clock.now, 0
    while (rest := pace.rest(100, 0.0)) == 0.0:
        done += 100
    assert done <= 1_000 * pacing.ARREARS and rest <= 0.1
    assert clock.now == began


def test_without_a_rate_as_much_rest_as_work(clock: Clock) -> None:
    pace = Pace()
    assert [pace.rest(100, took) for took in (0.0, 0.02, 3.0)] == [0.0, 0.02, 3.0]
