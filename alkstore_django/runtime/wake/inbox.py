"""The clerk's inbox: what has finished, and the one wait for that, for the database, or for a deadline."""

from __future__ import annotations

import math
import selectors
import socket
import time
from collections import deque
from contextlib import suppress

from alkstore_django.turns import Outcome

from .base import Wake

# A set of files that is handed to the kernel with each wait: a number that was closed and opened again,
# as after a reconnect, needs no care. select() itself fails above file number 1023.
Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Inbox:
    """Anybody puts in; one thread, the clerk's, takes and waits.

    ``put`` takes no lock, so it is safe in a signal handler. It writes a byte only when the clerk is
    asleep: either the clerk sees the mail before it sleeps, or ``put`` sees it asleep.
    """

    def __init__(self) -> None:
        self._outcomes: deque[Outcome] = deque()
        self.has_mail = False
        """Whether somebody has put in something since ``take``, if only a knock."""
        self._is_asleep = False
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._selector: selectors.BaseSelector | None = None
        self._filenos: tuple[int, ...] = ()

    def put(self, outcome: Outcome | None, *, gently: bool = False) -> None:
        """Add an outcome; ``None`` only wakes the clerk. ``gently``: let the clerk wait, and sleep."""
        if outcome is not None:
            self._outcomes.append(outcome)
        if gently:
            return
        self.has_mail = True
        if self._is_asleep and self._ends is not None:
            self._is_asleep = False
            with suppress(OSError):  # the worker has just ended
                self._ends[1].send(b"\0")

    def take(self) -> list[Outcome]:
        """All outcomes that are there."""
        self.has_mail = False
        outcomes: list[Outcome] = []
        with suppress(IndexError):
            while True:
                outcomes.append(self._outcomes.popleft())
        return outcomes

    def wait(self, seconds: float, wake: Wake | None = None) -> None:
        """Until there is mail, ``wake`` has heard something, or so many seconds have passed."""
        deadline = time.monotonic() + seconds
        while not (self.has_mail or (wake is not None and wake.heard())):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._sleep(left if wake is None else min(left, wake.pause()), wake)

    def close(self) -> None:
        if self._selector is not None:
            self._selector.close()
        for end in self._ends or ():
            end.close()

    def _sleep(self, seconds: float, wake: Wake | None) -> None:
        selector, reader = self._selecting(() if wake is None else wake.filenos())
        self._is_asleep = True
        try:
            if not self.has_mail:
                ready = selector.select(None if seconds == math.inf else seconds)
                if any(key.fd == reader.fileno() for key, _ in ready):
                    reader.recv(64)
        finally:
            self._is_asleep = False

    def _selecting(self, filenos: tuple[int, ...]) -> tuple[selectors.BaseSelector, socket.socket]:
        if self._ends is None:
            self._ends = socket.socketpair()
            for end in self._ends:
                end.setblocking(False)
        if self._selector is None or filenos != self._filenos:
            if self._selector is not None:
                self._selector.close()
            self._selector, self._filenos = Selector(), filenos
            for fileno in (self._ends[0].fileno(), *filenos):
                self._selector.register(fileno, selectors.EVENT_READ)
        return self._selector, self._ends[0]
