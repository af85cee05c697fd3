"""How far a command is: one line of a terminal that is written over. Elsewhere nothing is written."""

from __future__ import annotations

from typing import TextIO

BAR = 30
"""Characters of a full bar."""


class Progress:
    """On a stream; ``is_on`` tells whether that is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._length = 0
        self.is_on = stream.isatty()

    def show(self, what: str, done: int, total: int) -> None:
        """``total`` may have been counted before something came on top: a bar is never more than full."""
        if not self.is_on:
            return
        full = BAR if done >= total else BAR * done // total
        line = f"{what}  [{'#' * full}{'.' * (BAR - full)}]  {done:,} of {max(done, total):,}"
        self._write(f"\r{line.ljust(self._length)}")
        self._length = len(line)

    def end(self) -> None:
        """Take the line away."""
        if self._length:
            self._write(f"\r{' ' * self._length}\r")
            self._length = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
