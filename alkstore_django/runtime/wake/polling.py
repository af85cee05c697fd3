"""A database that tells nobody anything: ask it."""

from __future__ import annotations

from .base import Pace, Wake


class Polling(Wake):
    """Looks soon after work was found, and ever later while there is none, up to ``interval`` seconds."""

    interval = 0.25

    def __init__(self, interval: float | None = None) -> None:
        self._pace = Pace(self.interval if interval is None else interval)

    def quicken(self, seconds: float) -> None:
        self._pace.quicken(seconds)

    def arm(self) -> None:
        self._pace.restart()

    def learn(self, found: bool) -> None:
        if found:
            self._pace.hurry()
        else:
            self._pace.slow_down()

    def pause(self) -> float:
        return self._pace.left()

    def heard(self) -> bool:
        return self._pace.left() == 0
