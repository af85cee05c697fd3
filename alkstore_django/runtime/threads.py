"""The threads that run sync tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable

from alkstore_django.turns import Outcome

from .execution import Assignment
from .hygiene import close_connections
from .pools import Pool


class Threads(Pool):
    """``size`` threads. ``run`` raises nothing; it answers ``None`` for what another pool runs."""

    def __init__(
        self,
        size: int,
        run: Callable[[Assignment], Outcome | None],
        finished: Callable[[Outcome], None],
    ) -> None:
        super().__init__(size)
        self._run = run
        self._finished = finished
        self._closed = False
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for number in range(1, self.size + 1):
            thread = threading.Thread(target=self._work, name=f"alkworker-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Let the threads end. Those that are idle have ended on return."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
        if not self.running():
            for thread in self._threads:
                thread.join(timeout=1)

    def _notify(self, n: int) -> None:
        self._ready.notify(n)

    def _work(self) -> None:
        try:
            while (assignment := self._next()) is not None:
                outcome = self._run(assignment)
                self.forget(assignment)
                if outcome is not None:
                    self._finished(outcome)
        finally:
            close_connections()

    def _next(self) -> Assignment | None:
        with self._ready:
            while (assignment := self._begin()) is None:
                if self._closed:
                    return None
                self._ready.wait()
            return assignment
