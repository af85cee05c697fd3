"""What a ``Wake`` is: how a database tells an idle clerk that there may be something to claim."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence


class Wake:
    """Nothing ever wakes; subclasses do better.

    ``arm`` comes before each look at the tables, ``heard`` after it: what was committed in between is
    heard. Both may raise what the database raises.
    """

    interval = math.inf
    """After how many seconds an idle worker looks though it has heard nothing, unless it is told."""

    def arm(self) -> None:
        """Forget what was heard so far: the clerk looks at the tables next."""

    def learn(self, found: bool) -> None:
        """Whether that look found something to claim."""

    def quicken(self, seconds: float) -> None:
        """Let no more than so many seconds pass between two questions, where it has to ask."""

    def filenos(self) -> tuple[int, ...]:
        """What to select on: when one is readable, ``heard`` may have something to say."""
        return ()

    def pause(self) -> float:
        """In how many seconds ``heard`` wants to be asked even if nothing is readable."""
        return math.inf

    def heard(self) -> bool:
        """Whether the tables may have changed since ``arm``."""
        return False

    def let_go(self) -> None:
        """The connection is about to be closed; it may be broken."""

    def close(self) -> None:
        """Nobody waits any more."""


class Several(Wake):
    """Whatever one of them hears, the first ones first."""

    def __init__(self, wakes: Sequence[Wake]) -> None:
        self.wakes = wakes
        self.interval = min(wake.interval for wake in wakes)

    def arm(self) -> None:
        for wake in self.wakes:
            wake.arm()

    def learn(self, found: bool) -> None:
        for wake in self.wakes:
            wake.learn(found)

    def quicken(self, seconds: float) -> None:
        for wake in self.wakes:
            wake.quicken(seconds)

    def filenos(self) -> tuple[int, ...]:
        return tuple(fileno for wake in self.wakes for fileno in wake.filenos())

    def pause(self) -> float:
        return min(wake.pause() for wake in self.wakes)

    def heard(self) -> bool:
        return any(wake.heard() for wake in self.wakes)

    def let_go(self) -> None:
        for wake in self.wakes:
            wake.let_go()

    def close(self) -> None:
        for wake in self.wakes:
            wake.close()


class Pace:
    """When to look next: soon after something was found, then ever later, up to ``slowest`` seconds."""

    def __init__(self, slowest: float, fastest: float = 0.01, growth: float = 1.25) -> None:
        self.slowest = slowest
        self.fastest = min(fastest, slowest)
        self.growth = growth
        self._step = slowest
        self._due = 0.0

    def quicken(self, slowest: float) -> None:
        """From now on so often at least."""
        self.slowest = slowest
        self.fastest = min(self.fastest, slowest)
        if self._step > slowest:
            self._step = slowest
            self.restart()

    def left(self) -> float:
        """Seconds until it is time."""
        return max(0.0, self._due - time.monotonic())

    def restart(self) -> None:
        """Somebody has looked just now."""
        self._due = time.monotonic() + self._step

    def hurry(self) -> None:
        """Something was found."""
        self._step = self.fastest
        self.restart()

    def slow_down(self) -> None:
        """Nothing was found."""
        self._step = min(self._step * self.growth, self.slowest)
        self.restart()
