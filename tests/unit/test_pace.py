"""How much a step of the maintenance takes on, by how long the last ones took."""

from __future__ import annotations

from alkstore_django.pruning import LIMIT, Pace


def test_quick_steps_grow() -> None:
    pace = Pace()
    for _ in range(20):
        pace.looked(LIMIT / 10)
        pace.deleted(LIMIT / 10)
    assert (pace.rows, pace.room) == (Pace.MOST_ROWS, Pace.MOST_ROOM)


def test_slow_steps_shrink_to_what_it_began_with() -> None:
    """On a busy machine, and where each commit takes its time, less is no faster."""
    pace = Pace()
    for _ in range(3):
        pace.looked(0)
        pace.deleted(0)
    pace.looked(LIMIT * 1.1)
    pace.deleted(LIMIT * 1.1)
    assert (pace.rows, pace.room) == (4 * Pace.ROWS, 4 * Pace.ROOM)
    for _ in range(20):
        pace.looked(LIMIT * 100)
        pace.deleted(LIMIT * 100)
    assert (pace.rows, pace.room) == (Pace.ROWS, Pace.ROOM)


def test_steps_of_the_right_length_stay_as_they_are() -> None:
    pace = Pace()
    pace.looked(LIMIT * 0.75)
    pace.deleted(LIMIT * 0.75)
    assert (pace.rows, pace.room) == (Pace.ROWS, Pace.ROOM)
