"""Another process on the same database, which begins at a word and says what it found."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from django.conf import settings


class Helper:
    """``python -m benchmarks.helper``; it is ready on return."""

    def __init__(self, work: str) -> None:
        databases = json.dumps(settings.DATABASES)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.helper", work, databases],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> Any:
        """What it found; it has ended then."""
        with self._process:
            return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the other process has failed")
        return json.loads(line)
