"""How many jobs to hold at once: more than there are threads, as far as the tasks are short."""

from __future__ import annotations

from collections.abc import Sequence

from alkstore_django.turns import Outcome

SHORT_MS = 5.0


class Prefetch:
    """Per thread one job, up to ``most`` as long as they last under 5 ms together (spike.md 3.4).

    Short jobs share the cost of a claim; long ones are claimed one by one, so none waits behind
    another here while a different worker is idle.
    """

    def __init__(self, threads: int, most: int) -> None:
        self._threads = threads
        self._most = most
        self._average_ms: float | None = None

    @property
    def size(self) -> int:
        if self._average_ms is None:
            return self._threads
        return self._threads * max(1, min(self._most, int(SHORT_MS / max(self._average_ms, 0.01))))

    def forget(self) -> None:
        """Something takes long: back to one job per thread, until short ones prove themselves again."""
        self._average_ms = max(SHORT_MS, self._average_ms or 0.0)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        durations = [each.duration_ms for each in outcomes if each.duration_ms is not None]
        if durations:
            mean = sum(durations) / len(durations)
            old = mean if self._average_ms is None else self._average_ms
            # A long task counts at once, short ones have to prove themselves.
            self._average_ms = mean if mean > old else old + (mean - old) * 0.3
