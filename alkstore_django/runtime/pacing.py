"""``Pace``: work in small pieces that leaves room for others."""

from __future__ import annotations

import time

PIECE = 0.1
"""Seconds of the allowed rate that are done at once."""

ARREARS = 0.25
"""Seconds that may be made good after something held the work up."""

SHARE = 0.5
"""Of the time that work took, what is left to others even then: where there is one writer at a time, they
could wait for long."""


class Pace:
    """At most ``rate`` things a second, evenly; without a rate, as much rest as work.

    A token bucket by the monotonic clock: a piece may begin when all before it have been paid for.
    """

    def __init__(self, rate: float | None = None) -> None:
        self._rate = rate
        self._paid_until = time.monotonic()

    def size(self, most: int) -> int:
        """How many things to do at once, at most so many."""
        return most if self._rate is None else min(most, max(1, int(self._rate * PIECE)))

    def rest(self, n: int, took: float) -> float:
        """Seconds to rest after ``n`` things, which took so many."""
        if self._rate is None:
            return took
        now = time.monotonic()
        self._paid_until = max(self._paid_until, now - took - ARREARS) + n / self._rate
        return max(took * SHARE, self._paid_until - now)
