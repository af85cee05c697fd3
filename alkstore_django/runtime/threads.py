"""The threads that run sync tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from alkstore_django.turns import Outcome

from .execution import Assignment
from .hygiene import close_connections
from .pools import Pool


class Finished(Protocol):
    """Takes an outcome; ``gently`` if more of them will follow at once."""

    def __call__(self, outcome: Outcome, *, gently: bool) -> None: ...


class Threads(Pool):
    """``size`` threads. ``run`` raises nothing; it has no answer for what another pool runs.

    Short tasks come in chunks. Their outcomes gather until half of a chunk has begun, for as long as the
    clerk lets them: if it were told of each it would take the interpreter from the tasks that follow.
    """

    def __init__(
        self,
        size: int,
        run: Callable[[Assignment], Sequence[Outcome]],
        finished: Finished,
    ) -> None:
        super().__init__(size)
        self.gathers = False
        """Whether outcomes may be there that the clerk was not told of; it looks for itself then, and puts
        an end to this when none was there."""
        self._enough = 0
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
        self.gathers = len(self._waiting) > self.size
        self._enough = len(self._waiting) // 2
        self._ready.notify(n)

    def _work(self) -> None:
        try:
            while (assignment := self._next()) is not None:
                outcomes = self._run(assignment)
                self.forget(assignment)
                for outcome in outcomes:
                    gather = self.gathers and len(self._waiting) > self._enough
                    self._finished(outcome, gently=gather or outcome is not outcomes[-1])
        finally:
            close_connections()

    def _next(self) -> Assignment | None:
        with self._ready:
            while (assignment := self._begin()) is None:
                if self._closed:
                    return None
                self._ready.wait()
            if assignment.batch > 1:
                self._add_companions(assignment)
            return assignment
