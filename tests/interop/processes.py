"""Processes that never outlive their test."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

PATIENCE = 30
"""Seconds for anything that a process is waited for: a deadline, never a pause."""


@contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str], **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A process with text pipes, killed at the end if it is still there."""
    with subprocess.Popen(command, env=environment, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()  # nothing, where it has ended


def stop(process: subprocess.Popen[str]) -> str:
    """Ask a process to end; what it still printed. It must end well."""
    process.send_signal(signal.SIGTERM)
    return finished(process)


def finished(process: subprocess.Popen[str]) -> str:
    """Wait for a process to end, and to end well; its output."""
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, f"{process.args} ended with {process.returncode}:\n{output}\n{errors}"
    return output or ""


def wait_for(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for {what}"
        time.sleep(0.01)
