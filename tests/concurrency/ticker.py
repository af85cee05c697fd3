"""One scheduler of a race, as a process: ``python -m tests.concurrency.ticker DIRECTORY START COUNT STEP``.

It says that it is ready, waits for the file ``go``, and ticks at COUNT moments, STEP seconds apart from START
on, as fast as it can. It prints what it fired as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import django

django.setup()

from alkstore_django import schedules  # noqa: E402


def main(directory: str, start: int, count: int, step: int) -> None:
    schedules.list()  # the connection is there
    print("ready", flush=True)
    while not (Path(directory) / "go").exists():
        time.sleep(0.001)
    fired = [each for n in range(count) for each in schedules.tick(start + n * step)]
    print(json.dumps([[each.job_id, int(each.scheduled_for.timestamp())] for each in fired]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
