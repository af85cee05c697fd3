"""Ctrl-C and its like, between two steps of a command and never within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """A signal wants the command to end. ``code`` is the exit code that tells which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


class Interrupts:
    """``with`` it, signals raise ``Interrupted``; within a ``step`` only the second, the first at its end.

    In another thread than the main one, where no signal arrives, it does nothing.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._is_in_step = False
        self._came = 0

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    self._before[number] = signal.signal(number, self._arrive)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def step(self) -> Iterator[None]:
        """What is not to be interrupted."""
        self._is_in_step = True
        try:
            yield
        finally:
            self._is_in_step = False
        if self._came:
            raise Interrupted(self._came)

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        if self._is_in_step and not self._came:
            self._came = number
            return
        raise Interrupted(number)
