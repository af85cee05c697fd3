"""One scheduler of a race: ``python -m tests.concurrency.ticker ROLE DIRECTORY START COUNT STEP``.

It says that it is ready, waits for the file ``go``, plays its role at COUNT moments, STEP seconds apart from
START on, as fast as it can, and prints what it fired as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import django

django.setup()

from alkstore_django import schedules  # noqa: E402
from alkstore_django.models import Job  # noqa: E402
from alkstore_django.schedules import Firing  # noqa: E402
from tests.app import tasks  # noqa: E402


def tick(now: int, number: int) -> Sequence[Firing]:
    return schedules.tick(now)


def register(now: int, number: int) -> Sequence[Firing]:
    """Everybody makes the same schedules at once."""
    schedules.register(f"new {number}", "@every 1h", tasks.add, args=(1, 2))
    return []


def amend(now: int, number: int) -> Sequence[Firing]:
    """Change what moves no boundary, and tick."""
    schedules.update("s", priority=number, overlap=True)
    return schedules.tick(now)


def rename(now: int, number: int) -> Sequence[Firing]:
    """Change what is fired: nothing is put in the old queue once ``update`` has returned."""
    queue = f"queue {number}"
    schedules.update("s", queue=queue)
    others = Job.objects.exclude(queue=queue)
    before = others.count()
    fired = schedules.tick(now)
    time.sleep(0.002)
    assert others.count() == before
    return fired


def main(role: str, directory: str, start: int, count: int, step: int) -> None:
    schedules.list()  # the connection is there
    play = {"tick": tick, "register": register, "amend": amend, "rename": rename}[role]
    print("ready", flush=True)
    while not (Path(directory) / "go").exists():
        time.sleep(0.001)
    fired = [each for number in range(count) for each in play(start + number * step, number)]
    print(json.dumps([[each.job_id, int(each.scheduled_for.timestamp())] for each in fired]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
