"""Signals: the first asks for a graceful stop, the second for one at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

GRACEFUL, PROMPT = 1, 2
"""How often to ask for it."""

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGQUIT") if hasattr(signal, name))
HANGUP = getattr(signal, "SIGHUP", None)


_entered: list[Shutdown] = []


def hear_of_children() -> None:
    """Whoever has started us may ignore the end of children, and ``exec`` passes that on: then the system
    keeps no exit codes."""
    number = getattr(signal, "SIGCHLD", None)
    if number is not None and signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


class Shutdown:
    """Whether to stop, since when, and how soon. ``grace`` is how many seconds running tasks get.

    A hang-up asks for the graceful stop, however often it comes, or does what ``hang_up`` does.
    """

    def __init__(
        self, grace: float, wake: Callable[[], Any], hang_up: Callable[[], Any] | None = None
    ) -> None:
        self.grace = grace
        self.requests = 0
        self._asked = 0
        self._since = 0.0
        self._wake = wake
        self._hang_up = hang_up or (lambda: self.reach(GRACEFUL))
        self._previous: dict[int, Any] = {}

    def request(self) -> None:
        """Ask for the stop; a second time, for a prompt one."""
        self._asked += 1
        self.reach(self._asked)

    def reach(self, requests: int) -> None:
        """Ask so often in all. For those who pass on what others may have asked for here, too."""
        if requests > self.requests:
            if not self.requests:
                self._since = time.monotonic()
            self.requests = requests
            self._wake()

    @property
    def requested(self) -> bool:
        return self.requests > 0

    @property
    def due(self) -> bool:
        """Whether running tasks have had their time."""
        return self.requests >= PROMPT or (self.requested and time.monotonic() - self._since >= self.grace)

    @property
    def remaining(self) -> float:
        return max(0.0, self._since + self.grace - time.monotonic()) if self.requests == GRACEFUL else 0.0

    def __enter__(self) -> Shutdown:
        # Only the main thread may set handlers; a worker run in another (tests) is stopped by request().
        if threading.current_thread() is threading.main_thread():
            _entered.append(self)
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._received)
            if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:  # nohup ignores it
                self._previous[HANGUP] = signal.signal(HANGUP, self._received)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.let_go()
        if self in _entered:
            _entered.remove(self)

    def let_go(self) -> None:
        """Signals do again what they did before."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _received(self, number: int, frame: FrameType | None) -> None:
        if number == HANGUP:
            self._hang_up()
        else:
            self.request()


_OURS = [*SIGNALS, *([] if HANGUP is None else [HANGUP])]
_forking = threading.local()


def _before_fork() -> None:
    """What is sent to the child before it has let go of our handlers waits until it has."""
    if _entered:
        _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)


def _after_fork() -> None:
    if (mask := _forking.__dict__.pop("mask", None)) is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _after_fork_in_child() -> None:
    """What a task forks is no worker: a signal that ends processes is to end it (``Process.terminate``)."""
    for each in reversed(_entered):
        each.let_go()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
