"""What a supervisor and its process have to say to each other, and how each notices that the other is gone.

The process has one end of a pipe as its standard input. The supervisor writes how prompt the stop
shall be (``shutdown``); the process, that its work begins and ends; the end of the file says that the other
one has ended. Signals would not do: those of a terminal or of a service manager reach all processes
by themselves, and the supervisor's would count as the second one.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from .shutdown import GRACEFUL

NUMBER = "ALKWORKER_NUMBER"
"""The variable that says to a process that it is supervised, and which one it is."""

BEGUN, ENDED = b"!", b"."
"""What a process says: that its work begins, and that it ends in order. An exit code of 0 does not say so: a
task can end its process with one, too."""


def pair() -> tuple[int, int]:
    """The supervisor's end and the process's, as file numbers that nobody inherits by accident.

    On Windows the process cannot answer; a rolling restart, which waits for that, begins with a
    signal that Windows does not have.
    """
    if os.name == "nt":
        theirs, ours = os.pipe()
        return ours, theirs
    ours, theirs = (end.detach() for end in socket.socketpair())
    return ours, theirs


class Lifeline:
    """The process's end. Standard input is empty afterwards: what tasks start must not share the pipe."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._pipe = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)

    @classmethod
    def taken(cls) -> Lifeline | None:
        """That of this process, if it has one; it is not passed on to what this process starts."""
        number = os.environ.pop(NUMBER, "")
        return cls(int(number)) if number else None

    def say_begun(self) -> None:
        with suppress(OSError):  # there is nobody any more, which the listener will notice
            os.write(self._pipe, BEGUN)

    def say_ended(self) -> None:
        with suppress(OSError):
            os.write(self._pipe, ENDED)

    def follow(self, stop: Callable[[int], None]) -> None:
        """From now on, call ``stop`` with how often a stop was asked for, in a thread of its own."""
        threading.Thread(target=self._listen, args=[stop], name="alkworker-lifeline", daemon=True).start()

    def _listen(self, stop: Callable[[int], None]) -> None:
        with suppress(ConnectionResetError):
            while said := os.read(self._pipe, 1):
                stop(said[0])
        stop(GRACEFUL)
