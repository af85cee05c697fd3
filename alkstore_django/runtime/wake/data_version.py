"""SQLite says whether somebody else has written: the safety net for what rings no bell."""

from __future__ import annotations

from alkstore_django import looks

from .base import Pace, Wake

EVERY = 0.25
"""Seconds between two questions while nobody writes. A timer of 10 ms costs an idle process 5 times as
much (performance.md 1a)."""


class DataVersion(Wake):
    """Asks on the clerk's own connection, whose own commits do not count.

    Where that found a job that no bell had rung for, some other program enqueues: for about a second it
    is asked more often.
    """

    interval = 5.0

    def __init__(self, using: str) -> None:
        self._using = using
        self._version: int | None = None
        self._pace = Pace(EVERY)
        self._has_noticed = False

    def quicken(self, seconds: float) -> None:
        self._pace.quicken(seconds)

    def arm(self) -> None:
        self._version = looks.data_version(self._using)
        self._pace.restart()

    def learn(self, found: bool) -> None:
        if found and self._has_noticed:
            self._pace.hurry()
        self._has_noticed = False

    def pause(self) -> float:
        return self._pace.left()

    def heard(self) -> bool:
        if self._pace.left() > 0:
            return False
        self._pace.slow_down()
        self._has_noticed = looks.data_version(self._using) != self._version
        return self._has_noticed
