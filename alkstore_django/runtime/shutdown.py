"""Signals: the first asks for a graceful stop, the second for one at once."""

from __future__ import annotations

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
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._received)
            if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:  # nohup ignores it
                self._previous[HANGUP] = signal.signal(HANGUP, self._received)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _received(self, number: int, frame: FrameType | None) -> None:
        if number == HANGUP:
            self._hang_up()
        else:
            self.request()
