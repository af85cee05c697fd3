"""The watcher: one thread, and one connection, that looks for all who wait for jobs of a database."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from logging import getLogger

from django.db import Error, connections

from alkstore_django import looks

from .wake.base import Wake
from .wake.ends import choose
from .wake.inbox import Inbox

logger = getLogger("alkstore_django.waiting")

PARTING = 1.0
"""Seconds to wait for the end of a watcher that nobody needs any more."""


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


class Watcher:
    """Looks for the jobs of all waiters in one read, whenever some may have ended.

    It ends, and with it its connection, when nobody waits any more; whoever comes then goes to its
    successor. Those who come and go hold no lock: ``TaskTimedOut`` may be raised in them at any step.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._pid = os.getpid()
        self._inbox = Inbox()
        self._waiters: dict[int, Waiter] = {}
        self._fresh: deque[Waiter] = deque()
        self._wake = Wake()
        self._is_ending = False
        self._unstarted = [True]
        self._successors: dict[str, Watcher] = {}
        self.thread = threading.Thread(target=self._run, name=f"alkstore-watcher-{using}", daemon=True)

    def add(self, waiter: Waiter) -> bool:
        """``False`` if it is ending: the waiter has to go to its successor."""
        if self._pid != os.getpid():
            return False  # a fork has none of its parent's threads
        self._waiters[id(waiter)] = waiter
        self._fresh.append(waiter)
        self._start()
        self._inbox.put(None)
        if not self._is_ending:
            return True
        self.remove(waiter)
        return False

    def _start(self) -> None:
        """Once, whoever comes first."""
        try:
            self._unstarted.pop()
            self.thread.start()
        except IndexError:
            return
        except BaseException:
            self._is_ending = True
            raise

    @property
    def successor(self) -> Watcher:
        """The same for all who ask."""
        return self._successors.setdefault("", Watcher(self._using))

    def remove(self, waiter: Waiter) -> None:
        self._waiters.pop(id(waiter), None)
        if not self._waiters:
            self._inbox.put(None)

    def leave(self) -> None:
        """Wait until it has ended, if nobody waits any more: what comes next may want its connection gone."""
        if not self._waiters:
            self.thread.join(timeout=PARTING)

    def _run(self) -> None:
        try:
            self._wake = choose(self._using, self._waits_for)
            self._watch()
        except Exception as error:
            logger.info("Those who wait for jobs of %r look by themselves: %s", self._using, error)
        finally:
            self._is_ending = True
            self._release(list(self._waiters.values()), is_vain=True)
            self._inbox.close()
            with suppress(Error):  # of a connection that is broken
                self._wake.close()
                connections.close_all()

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
                self._look(list(self._waiters.values()))
            elif fresh:
                self._look(fresh)
            self._inbox.wait(max(0.0, next_look - time.monotonic()), self._wake)

    def _is_wanted(self) -> bool:
        """Either it sees who has just come, or they see that it is ending."""
        self._is_ending = not self._waiters
        if self._is_ending and self._waiters:
            self._is_ending = False
        return not self._is_ending

    def _come(self) -> Iterator[Waiter]:
        while self._fresh:
            yield self._fresh.popleft()

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
            if self._waiters.pop(id(waiter), None) is not None:
                waiter.end(is_vain=is_vain)

    def _waits_for(self, ids: Set[int]) -> bool:
        return not ids.isdisjoint([waiter.job_id for waiter in list(self._waiters.values())])


_watchers: dict[str, Watcher] = {}


@contextmanager
def watched(using: str, waiter: Waiter) -> Iterator[Watcher]:
    """While somebody waits."""
    watcher = _watchers.get(using) or _watchers.setdefault(using, Watcher(using))
    try:
        while not watcher.add(waiter):
            watcher = _watchers[using] = watcher.successor
        yield watcher
    finally:
        watcher.remove(waiter)
