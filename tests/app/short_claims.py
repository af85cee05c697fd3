"""A task with a claim of its own length, in a queue of its own: the shortest counts for a whole queue."""

from __future__ import annotations

import time

from alkstore_django.tasks import task

from .tasks import write_line


@task(queue_name="short", visibility_timeout=2)
def nap(path: str, line: str, seconds: float) -> None:
    write_line(path, f"start {line}")
    time.sleep(seconds)
    write_line(path, f"end {line}")
