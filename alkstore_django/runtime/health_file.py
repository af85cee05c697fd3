"""A file whose age tells whether the worker is well: for probes that ask no database."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from alkstore_django.logs import get_logger

logger = get_logger("alkstore_django.worker")


class HealthFile:
    """Written anew at each beat, in one step; what goes wrong with it is logged once, and stops nothing."""

    def __init__(self, path: str, worker_id: str) -> None:
        self._path = Path(path)
        self._worker_id = worker_id
        self._has_failed = False

    def write(self, **facts: Any) -> None:
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            fresh.write_text(json.dumps({"worker_id": self._worker_id, "pid": os.getpid(), **facts}) + "\n")
            fresh.replace(self._path)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                logger.warning("The health file cannot be written, the work goes on: %s", error)
            self._has_failed = True
            with suppress(OSError):
                fresh.unlink()

    def remove(self) -> None:
        """Unless another worker has written it since."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            if json.loads(self._path.read_text())["worker_id"] == self._worker_id:
                self._path.unlink()
