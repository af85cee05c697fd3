"""How long to wait before the next attempt: pure arithmetic, no clock."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import timedelta

from .values import LONGEST, seconds


@dataclass(frozen=True)
class Backoff:
    """Exponential delays in whole seconds: ``base * factor ** (attempt - 1)``, at most ``cap``.

    ``jitter`` spreads each delay by that share of itself to either side, so that jobs which failed
    together do not come back together. The cap holds after the jitter too. Raises ``ValueError``
    for a negative number and for one that no delay can have.
    """

    base: float = 15
    factor: float = 2
    cap: float = 3600
    jitter: float = 0.1

    def __post_init__(self) -> None:
        for name in ("base", "factor", "cap", "jitter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not 0 <= value <= LONGEST:
                raise ValueError(f"backoff {name} must be a number from 0 to {LONGEST}, not {value!r}.")
        if self.jitter > 1:
            raise ValueError(f"backoff jitter is a share from 0 to 1, not {self.jitter!r}.")

    def delay(self, attempt: int, rng: random.Random | None = None) -> int:
        """Seconds to wait after the failed attempt of that number (1 is the first)."""
        wait = self._plain(attempt)
        if self.jitter:
            spread = (rng or random).uniform(-self.jitter, self.jitter)
            wait += wait * spread
        return max(0, min(round(wait), math.floor(self.cap)))

    def _plain(self, attempt: int) -> float:
        if self.base == 0 or attempt < 1:
            return 0.0
        try:
            return min(self.base * float(self.factor) ** (attempt - 1), self.cap)
        except OverflowError:
            # A float power past 1e308 raises instead of becoming infinite (a power of ints would grow
            # without end): the cap is the answer.
            return self.cap


def as_backoff(value: Backoff | int | float | timedelta | None) -> Backoff:
    """A ``Backoff`` from what a task may be given: itself, a base in seconds, or ``None`` (the default)."""
    if value is None:
        return Backoff()
    if isinstance(value, Backoff):
        return value
    base = seconds("backoff", value)
    return Backoff(base=base, cap=max(base, Backoff.cap))
