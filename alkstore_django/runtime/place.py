"""A place for one process of a supervisor: it is started, watched, and started again."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from alkstore_django.backoff import Backoff
from alkstore_django.logs import get_logger

from .exits import DONE, FAILED, RECYCLED, STUCK
from .lifeline import BEGUN, ENDED, NUMBER, pair
from .shutdown import GRACEFUL, SIGNALS

logger = get_logger("alkstore_django.supervisor")

HEALTHY = 60.0
"""Seconds after which a crash has nothing to do with the one before."""

AFTER_CRASH = Backoff(base=1, cap=30, jitter=0.2)
"""The wait before the next start, by the number of crashes in a row."""

MARGIN = 10.0
"""Seconds that a process may take to end, beyond those that its tasks may take."""


LOOK = 0.2
"""Seconds between two looks at whether a process that has not begun yet has ended."""


class Place:
    """``changed`` is called, in a thread, when the process has begun its work, and when it has ended.

    ``start_at`` and ``kill_at`` are moments of the monotonic clock, infinite where there is none.
    """

    def __init__(
        self, number: int, command: Sequence[str], grace: float, changed: Callable[[Place], None]
    ) -> None:
        self.number = number
        self.code: int | None = None
        """The last exit code; negative for a signal, as of ``subprocess``."""
        self.start_at = 0.0
        self.kill_at = math.inf
        self._command = command
        self._grace = grace
        self._changed = changed
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._has_begun = self._has_said_end = self._is_over = False
        self._started = 0.0
        self._crashes = 0
        self._requests = 0
        self._is_closed = False

    @property
    def is_empty(self) -> bool:
        """For good: nothing runs here, and nothing will be started."""
        return self._process is None and self.start_at == math.inf

    @property
    def ended_well(self) -> bool:
        """A signal of ours ends a process by itself only before it has begun."""
        return self.code in (None, DONE, RECYCLED) or -(self.code or 0) in SIGNALS

    @property
    def is_at_work(self) -> bool:
        """Whether its process has begun to work, and is not asked to end."""
        return self._process is not None and self._has_begun and not self._requests

    def start(self) -> None:
        """Start a new interpreter. It inherits nothing but standard output and error."""
        self.start_at, self._started, self._requests = math.inf, time.monotonic(), 0
        self._has_begun = self._has_said_end = self._is_over = False
        environment = {**os.environ, NUMBER: str(self.number)}
        ours, theirs = pair()
        try:
            self._process = subprocess.Popen(self._command, stdin=theirs, env=environment)  # noqa: S603
        except OSError as error:
            os.close(ours)
            self._crash(f"no process could be started: {error}")
            return
        finally:
            os.close(theirs)
        self._lifeline = ours
        logger.info("Worker %s is process %s.", self.number, self._process.pid)
        threading.Thread(target=self._watch, args=[self._process, ours], daemon=True).start()

    def stop(self, requests: int = GRACEFUL) -> None:
        """Start nothing more here; ask the process to end, unless it was asked as often already."""
        self._is_closed, self.start_at = True, math.inf
        self._ask(requests)

    def renew(self) -> None:
        """Ask the process to end, so that another one takes its place."""
        self._ask(GRACEFUL)

    def kill(self) -> None:
        self.kill_at = math.inf
        if self._process is not None:
            logger.error("Worker %s does not end: process %s is killed.", self.number, self._process.pid)
            self._process.kill()

    def reap(self, *, endless: bool) -> None:
        """If its process has ended, take note of how, and of when to start the next one.

        Without ``endless`` a process that ended well of itself had nothing left to do, and one that
        could not begin never will: it is the last.
        """
        process = self._process
        if process is None or not self._is_over:
            return
        self._process, self.code, self.kill_at = None, process.returncode, math.inf
        os.close(self._lifeline)
        if self._is_closed:
            return
        is_done = self.code == DONE and (self._has_said_end or os.name == "nt")
        if self._requests or self.code in (RECYCLED, STUCK) or (endless and is_done):
            self._crashes, self.start_at = 0, time.monotonic()
        elif endless or not (is_done or (self.code == FAILED and not self._has_begun)):
            self._crash(f"process {process.pid} {_in_words(self.code)}")

    def _ask(self, requests: int) -> None:
        if self._process is None or requests <= self._requests:
            return
        self._requests = requests
        self.kill_at = time.monotonic() + MARGIN + (self._grace if requests == GRACEFUL else 0)
        with suppress(OSError):  # it has just ended
            os.write(self._lifeline, bytes([requests]))

    def _crash(self, what: str) -> None:
        lived = time.monotonic() - self._started
        self._crashes = 1 if lived > HEALTHY else self._crashes + 1
        wait = AFTER_CRASH.delay(self._crashes)
        self.start_at = time.monotonic() + wait
        again = f", crash {self._crashes} in a row" if self._crashes > 1 else ""
        logger.error(
            "Worker %s: %s after %.1f s%s; the next start is in %s s.", self.number, what, lived, again, wait
        )

    def _watch(self, process: subprocess.Popen[bytes], lifeline: int) -> None:
        said = _first_word(process, lifeline)
        if said == BEGUN:
            self._has_begun = True
            self._changed(self)
        process.wait()
        said += _last_words(lifeline)
        self._has_begun, self._has_said_end = BEGUN in said, ENDED in said
        self._is_over = True
        self._changed(self)


def _first_word(process: subprocess.Popen[bytes], lifeline: int) -> bytes:
    """Wait until a process says that it begins; empty if it has ended before. What it has started by then
    may have its end of the lifeline, and go on."""
    with suppress(OSError):  # it has ended in the middle of something; Windows: it cannot say it
        while process.poll() is None:
            if select.select([lifeline], [], [], LOOK)[0]:
                return os.read(lifeline, 1)
    return b""


def _last_words(lifeline: int) -> bytes:
    """What a process has said that nobody has read."""
    if os.name == "nt":
        return b""
    with suppress(OSError):  # it has said nothing
        os.set_blocking(lifeline, False)
        return os.read(lifeline, len(BEGUN + ENDED))
    return b""


def _in_words(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    names = {each.value: each.name for each in signal.Signals}
    return f"was ended by {names.get(-code, f'signal {-code}')}"
