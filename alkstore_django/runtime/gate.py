"""Who of a process may write to a database that has one writer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Gate:
    """Lets one through at a time: the clerk before all others, and those as they came.

    Without it whoever waits for the lock of an SQLite file sleeps and tries again, and whoever has just
    given it back takes it once more: a clerk beside atomic tasks had one turn in many seconds
    (spike.md 6).
    """

    def __init__(self) -> None:
        self._line: deque[object] = deque()
        self._inside: object | None = None
        self._moved = threading.Condition()

    @contextmanager
    def passed(
        self, *, first: bool = False, timeout: float | None = None
    ) -> Iterator[Callable[[], None] | None]:
        """Wait for one's turn; ``first``: as the clerk. Yields what gives the place up before the end, and
        ``None`` if it has not come after ``timeout`` seconds."""
        ticket = object()
        with self._moved:
            (self._line.appendleft if first else self._line.append)(ticket)
            try:
                may_pass = self._moved.wait_for(lambda: self._may_pass(ticket), timeout)
                if may_pass:
                    self._inside = ticket
            finally:
                self._line.remove(ticket)
                self._moved.notify_all()
        try:
            yield (lambda: self._leave(ticket)) if may_pass else None
        finally:
            self._leave(ticket)

    def _may_pass(self, ticket: object) -> bool:
        return self._inside is None and self._line[0] is ticket

    def _leave(self, ticket: object) -> None:
        with self._moved:
            if self._inside is ticket:
                self._inside = None
                self._moved.notify_all()
