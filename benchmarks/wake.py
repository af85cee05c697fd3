"""How soon an idle worker starts a job: from the return of the enqueuing call to the task's first line."""

from __future__ import annotations

import random
import time

from alkstore_django.models import Job

from .database import clear
from .measure import columns
from .processes import Helper
from .tasks import stamp

ROUNDS = 2
WARM = 3
"""Jobs that are not counted: for them the worker starts, and imports what is imported late."""


def run(quick: bool) -> None:
    samples = 10 if quick else 60
    waited: dict[str, list[float]] = {"raw, each ms or LISTEN": [], "alkworker": []}
    for _ in range(ROUNDS):
        for name, work in zip(waited, ("listen", "work"), strict=True):
            waited[name] += _measure(work, samples)
    columns(
        f"Wake, milliseconds ({ROUNDS * samples} jobs, 50 to 100 ms apart)",
        ("", "p50", "p90", "p99", "max"),
        [
            (name, *(f"{share(found, each):.2f}" for each in (0.5, 0.9, 0.99, 1)))
            for name, found in waited.items()
        ],
    )


def share(found: list[float], part: float) -> float:
    return sorted(found)[min(len(found) - 1, int(len(found) * part))]


def _measure(work: str, samples: int) -> list[float]:
    clear()
    helper = Helper(work)
    returned = []
    for number in range(samples + WARM):
        time.sleep(random.uniform(0.05, 0.1))
        stamp.enqueue(number)
        returned.append(time.monotonic())
        while number < WARM and Job.objects.exists():
            time.sleep(0.05)
    while Job.objects.exists():
        time.sleep(0.05)
    helper.go()
    started = dict(helper.result())
    return [(started[number] - returned[number]) * 1000 for number in range(WARM, samples + WARM)]
