"""The watcher: one thread, and one connection, that looks for all who wait for jobs of a database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress

from alkstore_django import looks
from alkstore_django.logs import get_logger

from .attendant import Attendant, attend
from .wake.ends import choose

logger = get_logger("alkstore_django.waiting")


class Waiter:
    """Somebody who waits for the end of a job, or for its result if that comes before (``or_result``).

    ``tell`` is called by another thread, and may not raise: when it has come, or when nobody can say so
    (``is_vain``).
    """

    def __init__(self, job_id: int, tell: Callable[[], object], *, or_result: bool = False) -> None:
        self.job_id = job_id
        self.or_result = or_result
        self.is_vain = False
        self._tell = [tell]

    def end(self, *, is_vain: bool) -> None:
        """Tell, once."""
        with suppress(IndexError):
            tell = self._tell.pop()
            self.is_vain = is_vain
            tell()


class Watcher(Attendant[Waiter]):
    """Looks for the jobs of all waiters in one read, whenever some may have ended."""

    kind = "watcher"

    def _serve(self) -> None:
        self._wake = choose(self._using, self._waits_for)
        self._watch()

    def _dismiss(self, guests: list[Waiter], trouble: Exception | None) -> None:
        if trouble is not None:
            logger.info("Those who wait for jobs of %r look by themselves: %s", self._using, trouble)
        self._release(guests, is_vain=True)

    def _watch(self) -> None:
        next_look = 0.0
        while self._is_wanted():
            self._inbox.take()
            fresh = list(self._come())
            self._wake.learn(bool(fresh))
            now = time.monotonic()
            if fresh:
                next_look = min(next_look, now + self._wake.interval)
            if now >= next_look or self._wake.heard():
                next_look = now + self._wake.interval
                self._wake.arm()
                self._look(list(self._guests.values()))
            elif fresh:
                self._look(fresh)
            self._inbox.wait(max(0.0, next_look - time.monotonic()), self._wake)

    def _look(self, waiters: Sequence[Waiter]) -> None:
        ids = {waiter.job_id for waiter in waiters}
        live = looks.live(self._using, sorted(ids))
        unsaved = live & {waiter.job_id for waiter in waiters if waiter.or_result}
        saved = looks.saved(self._using, sorted(unsaved)) if unsaved else set()
        self._release(
            waiter
            for waiter in waiters
            if waiter.job_id not in live or (waiter.or_result and waiter.job_id in saved)
        )

    def _release(self, waiters: Iterable[Waiter], *, is_vain: bool = False) -> None:
        for waiter in waiters:
            if self._guests.pop(id(waiter), None) is not None:
                waiter.end(is_vain=is_vain)

    def _waits_for(self, ids: Set[int]) -> bool:
        return not ids.isdisjoint([waiter.job_id for waiter in list(self._guests.values())])


_watchers: dict[str, Watcher] = {}


@contextmanager
def watched(using: str, waiter: Waiter) -> Iterator[Watcher]:
    """While somebody waits."""
    watcher: Watcher | None = None
    try:
        watcher = attend(_watchers, Watcher, using, waiter)
        yield watcher
    finally:
        if (found := watcher or _watchers.get(using)) is not None:
            found.remove(waiter)
