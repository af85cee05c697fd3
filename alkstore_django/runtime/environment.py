"""What all threads of a process share, and no task should change: its environment."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from contextlib import suppress
from typing import Any

from alkstore_django.logs import get_logger

logger = get_logger("alkstore_django.worker")


FRESH = 1.0
"""Seconds for which it is taken for granted that nobody but a task has changed the working directory."""


class Environment:
    """``os.environ``, the working directory and the filters of ``warnings``, put back after tasks.

    That is safe when no task runs any more that may count on the change; and only of a task that ran
    alone can be said that it was the one. So it is done whenever the last of those that run has ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._tasks: dict[str, None] = {}
        self._before = _Snapshot()
        self._looked_at = -math.inf

    def begin(self, task: str) -> None:
        with self._lock:
            if not self._running:
                if time.monotonic() > self._looked_at + FRESH or not self._before.is_like_now:
                    self._before = _Snapshot()
                self._tasks.clear()
            self._running += 1
            self._tasks[task] = None

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            changed = [] if self._running else self._before.restore()
            self._looked_at = time.monotonic()
            tasks = list(self._tasks)
        if changed:
            logger.warning(
                "%s %s changed what belongs to the whole process: %s. Put back.",
                "The task" if len(tasks) == 1 else "One of the tasks",
                ", ".join(tasks),
                "; ".join(changed),
            )


class _Snapshot:
    """How it is now. A look costs two microseconds: ``os.environ`` itself decodes every name and value."""

    def __init__(self) -> None:
        self._object = os.environ
        self._environ: dict[Any, Any] = dict(_raw_environ())
        self._directory = _directory()
        self._filters = list(warnings.filters)

    @property
    def is_like_now(self) -> bool:
        """As far as it can be seen without asking the system."""
        is_same = os.environ is self._object and self._environ == _raw_environ()
        return is_same and self._filters == warnings.filters

    def restore(self) -> list[str]:
        """Make it as it was; what was different, without values, which may be secret."""
        changed = []
        if os.environ is not self._object:
            changed.append("os.environ itself")
            os.environ = self._object  # noqa: B003 - it is the one from before
        if self._environ != _raw_environ():
            changed.append(f"os.environ ({', '.join(sorted(self._restore_environ()))})")
        if self._directory != _directory():
            changed.append("the working directory")
            with suppress(OSError):  # it is gone
                os.chdir(self._directory or os.sep)
        if self._filters != warnings.filters:
            changed.append("the filters of warnings")
            warnings.resetwarnings()
            warnings.filters.extend(self._filters)  # type: ignore[attr-defined]
        return changed

    def _restore_environ(self) -> set[str]:
        now = dict(_raw_environ())
        names = set()
        for raw in {*self._environ, *now}:
            if self._environ.get(raw) != now.get(raw):
                name = os.fsdecode(raw)
                names.add(name)
                if raw in self._environ:
                    os.environ[name] = os.fsdecode(self._environ[raw])
                else:
                    del os.environ[name]
        return names


def _raw_environ() -> dict[Any, Any]:
    found: Any = os.environ  # perhaps a dict, which somebody has put there
    raw: dict[Any, Any] = getattr(found, "_data", found)
    return raw


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


ENVIRONMENT = Environment()
