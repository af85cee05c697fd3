"""Sync code that is cut off: ``TaskTimedOut`` or ``TaskInterrupted`` is raised in the thread that runs it."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from alkstore_django.exceptions import AlkstoreError, Discard, Retry, TaskTimedOut

from .watch import Alarm, Watch


def told(limit: float) -> str:
    return f"the task ran longer than its timeout of {limit:g} s"


class Interruption:
    """Raises an exception in the thread that has made it, once, and only until ``end()``.

    Who takes the only token decides: the thread that has come to the end of the task's code, and then
    nothing is raised any more; or who sends, and then the thread waits until it is, or takes it back.
    No lock is involved: the exception may come between any two steps of whoever would hold it.
    """

    def __init__(self) -> None:
        self.raised: AlkstoreError | None = None
        """What was raised in the code, whatever that has made of it."""
        self._thread = threading.get_ident()
        self._token = [True]
        self._has_begun = False
        self._is_sent = False

    def begin(self) -> None:
        """Called by the thread: from here on it is ready for the exception."""
        self._has_begun = True

    def send(self, kind: type[AlkstoreError], text: str) -> None:
        """Called by another thread."""
        while not self._has_begun:
            time.sleep(0.0005)
        try:
            self._token.pop()
        except IndexError:
            return
        _raise_in(self._thread, self._exception(kind, text))
        self._is_sent = True

    def end(self) -> None:
        """Called by the thread after the task's code. The exception may come in here, for the last time."""
        try:
            self._token.pop()
        except IndexError:
            while not self._is_sent:
                time.sleep(0.0005)
            _raise_in(self._thread, None)

    def _exception(self, kind: type[AlkstoreError], text: str) -> type[AlkstoreError]:
        """Python makes the instance, in the thread: a class that says it to nobody else but us."""

        def init(error: AlkstoreError) -> None:
            kind.__init__(error, text)
            self.raised = kind(text)

        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        return type(kind.__name__, (kind,), {"__init__": init, **names})


def call_within(
    watch: Watch,
    subject: Any,
    limit: float | None,
    function: Callable[[], Any],
    interruption: Interruption | None = None,
) -> Any:
    """The value of ``function()``; raises ``TaskTimedOut`` when it was interrupted after ``limit`` seconds,
    or what somebody else has sent to ``interruption``.

    Also if the function caught that and went on: it was cut off somewhere. Only ``Retry`` and ``Discard``
    are its own decision. ``watch`` tells of ``subject`` when it does not end in time.
    """
    if limit is None and interruption is None:
        return function()
    interruption = interruption or Interruption()
    with _limited(watch, subject, limit, interruption):
        try:
            try:
                interruption.begin()
                value = function()
            finally:
                interruption.end()
        except (Retry, Discard):
            raise
        except Exception as error:
            if interruption.raised is None or isinstance(error, type(interruption.raised)):
                raise
            raise interruption.raised from error
    if interruption.raised is not None:
        raise interruption.raised
    return value


@contextmanager
def _limited(watch: Watch, subject: Any, limit: float | None, interruption: Interruption) -> Iterator[None]:
    if limit is None:
        yield
        return
    alarm = Alarm(limit, partial(interruption.send, TaskTimedOut, told(limit)), subject)
    watch.set(alarm)
    try:
        yield
    finally:
        watch.stop(alarm)


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Raise it before the thread's next step in Python; ``None`` takes back what has not been raised."""
    pointer = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), pointer)
