"""A clock of the test's own, in place of the database's: boundaries of one second without waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

from alkstore_django.models import turn
from alkstore_django.sql import get_dialect

START = 1_800_000_000


class Clock:
    """``now`` in Unix seconds; every statement of the app reads it, because all spell it by the dialect."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, alias: str = "default") -> None:
        self._monkeypatch = monkeypatch
        self._connection = connections[alias]
        self._dialect = type(get_dialect(self._connection))
        self.step_to(START)

    def step_to(self, moment: int) -> None:
        self.now = moment
        self._monkeypatch.setattr(self._dialect, "now", f"({moment})")
        if self._connection.vendor == "sqlite":
            self._forget_triggers()

    def _forget_triggers(self) -> None:
        """The triggers of a turn were made when it was earlier."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                "SELECT type, name FROM temp.sqlite_schema WHERE name LIKE 'alkstore_%' AND type <> 'trigger'"
            )
            for kind, name in cursor.fetchall():
                cursor.execute(f"DROP {kind} temp.{name}")
        vars(turn._prepared).clear()  # which knows a connection that has them

    def step(self, seconds: int) -> None:
        self.step_to(self.now + seconds)


@contextmanager
def own_clock(alias: str = "default") -> Iterator[Clock]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Clock(monkeypatch, alias)
