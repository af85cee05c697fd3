"""Tasks that ask the clerk to hold their claims longer: ``context.heartbeat()``."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Container
from typing import Any

PATIENCE = 2.0
"""Seconds that a task waits for an answer: the database may be away, or, on SQLite, locked by itself."""


class Ask:
    """``extend`` in seconds; ``None`` is the task's own visibility timeout.

    The answer is waited for with a bare lock: ``TaskTimedOut`` may be raised in whoever waits, and what
    is made of locks, such as an ``Event``, could then stay locked for the one who answers.
    """

    __slots__ = ("_answered", "claim", "extend", "is_held")

    def __init__(self, claim: Any, extend: int | None) -> None:
        self.claim = claim
        self.extend = extend
        self.is_held = False
        self._answered = threading.Lock()
        self._answered.acquire()

    def answer(self, is_held: bool) -> None:
        self.is_held = is_held
        self._answered.release()

    def wait(self, seconds: float) -> bool:
        """Whether it was answered."""
        return self._answered.acquire(timeout=seconds)


class Heartbeats:
    """``ask`` is called by tasks, in any thread; the rest by the clerk. ``wake`` wakes the clerk."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._asked: deque[Ask] = deque()
        self._open: list[Ask] = []
        self._closed = False

    def ask(self, claim: Any, extend: int | None) -> bool | None:
        """Whether the claim is held for so long. ``None`` without an answer in time: it will be, as soon
        as it can."""
        ask = Ask(claim, extend)
        self._asked.append(ask)
        self._wake()
        deadline = time.monotonic() + PATIENCE
        while not ask.wait(0.5):  # in pieces: to wait is a call into C, which a timeout cannot interrupt
            if time.monotonic() > deadline or self._closed:
                return None
        return ask.is_held

    def wanted(self, own_visibility: Callable[[Any], int]) -> dict[Any, int]:
        """Claims to hold, and the seconds to hold each for. Until they are answered they are wanted."""
        while self._asked:
            self._open.append(self._asked.popleft())
        return {ask.claim: ask.extend or own_visibility(ask.claim) for ask in self._open}

    def answer(self, held: Container[Any]) -> None:
        """Answer those that were ``wanted``."""
        for ask in self._open:
            ask.answer(ask.claim in held)
        self._open.clear()

    def close(self) -> None:
        """Nobody answers any more."""
        self._closed = True
