"""Enqueues tasks until it is stopped: ``python -m tests.failures.enqueuer SECONDS``, with so many in between.

Each second it prints how many these were, and how long the longest of them took.
"""

from __future__ import annotations

import sys
import time

import django

django.setup()

from tests.app import tasks  # noqa: E402


def main(pause: float) -> None:
    tasks.nothing.enqueue()  # the connection is there
    while True:
        begun, count, longest = time.perf_counter(), 0, 0.0
        while time.perf_counter() - begun < 1.0:
            started = time.perf_counter()
            tasks.nothing.enqueue()
            longest = max(longest, time.perf_counter() - started)
            count += 1
            time.sleep(pause)
        print(f"enqueued {count} {longest:.4f}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
