"""Why an attempt failed, as text that every database can store."""

from __future__ import annotations

from dataclasses import dataclass
from traceback import format_exception

MAX_CLASS_PATH = 240
MAX_ERROR = 2_000
MAX_TRACEBACK = 20_000
"""Characters kept of each; a traceback keeps its end, where the cause is."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as text: ``class_path`` is importable, ``error`` the message, ``traceback`` the whole."""

    class_path: str
    error: str
    traceback: str = ""

    @property
    def summary(self) -> str:
        """One text for ``last_error`` of a dead letter, as honker writes it: message, then traceback."""
        return f"{self.error or self.class_path}\n{self.traceback}" if self.traceback else self.error


def from_exception(exception: BaseException) -> Failure:
    """The failure of a raised exception, with its traceback."""
    return Failure(
        class_path=class_path(type(exception)),
        error=storable(_message(exception), MAX_ERROR),
        traceback=storable(_traceback(exception), MAX_TRACEBACK, keep_end=True),
    )


def of(exception_class: type[BaseException], error: str) -> Failure:
    """A failure that nothing raised, such as a worker that vanished."""
    return Failure(class_path=class_path(exception_class), error=storable(error, MAX_ERROR))


def class_path(exception_class: type[BaseException]) -> str:
    """The importable path, in the length of its column: code may make classes of any name."""
    return storable(f"{exception_class.__module__}.{exception_class.__qualname__}", MAX_CLASS_PATH)


def storable(text: str, limit: int, *, keep_end: bool = False) -> str:
    """``text`` cut to ``limit`` characters, without NUL and lone surrogates (PostgreSQL refuses both)."""
    text = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(text) <= limit:
        return text
    return f"[cut]\n{text[-limit:]}" if keep_end else f"{text[:limit]} [cut]"


def _traceback(exception: BaseException) -> str:
    try:
        return "".join(format_exception(exception))
    except Exception as broken:  # it asks the exception for attributes, which a user's class may refuse
        return f"(its traceback could not be read: {type(broken).__name__})"


def _message(exception: BaseException) -> str:
    try:
        return str(exception)
    except Exception as broken:  # a user's __str__ may itself raise
        return f"(its message could not be read: {type(broken).__name__})"
