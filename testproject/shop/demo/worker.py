"""The worker of the demo: a process of its own, whose log is kept in a file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

PATIENCE = 60.0
"""Seconds that one run of the worker may take."""


class Worker:
    """``manage.py alkworker --batch``: ends by itself when nothing is left to do."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.started = time.monotonic()

    def work_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true, the worker has ended, or its time is over."""
        while self.process.poll() is None and self.left > 0 and not condition():
            time.sleep(0.02)

    def wait(self) -> int:
        """Let it end; its exit code, which is that of TERM when its time was over."""
        try:
            return self.process.wait(self.left)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            return self.process.wait()

    @property
    def age(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        return max(0.0, PATIENCE - self.age)


def log_path() -> Path:
    return settings.DATA_DIR / "worker.log"


@contextmanager
def running_worker(warehouse: str) -> Iterator[Worker]:
    """Start a worker that knows where the warehouse is, and stop it if it still runs in the end."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "alkworker", "--batch"]
    environment = os.environ | {"ALKSTORE_WAREHOUSE_URL": warehouse}
    with log_path().open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)  # noqa: S603 - our own
    try:
        yield Worker(process)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()
