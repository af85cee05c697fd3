"""Loggers whose lines change nothing: filters and handlers are the project's, and may raise.

``logging`` guards what its own handlers do, not what a filter does, nor a handler that overrides
``emit``. In an executor such an error would be that of a task, and in the clerk the end of a worker.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any


class Guarded(logging.LoggerAdapter[logging.Logger]):
    """What cannot be logged is told on standard error, as ``logging`` does."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception:
            if logging.raiseExceptions:
                text = f"A line of {self.logger.name} could not be logged: {msg}\n{traceback.format_exc()}"
                with suppress(OSError, ValueError, AttributeError):  # broken, closed, or never there
                    sys.stderr.write(text)


def get_logger(name: str) -> Guarded:
    """The logger of that name, guarded."""
    return Guarded(logging.getLogger(name), {})
