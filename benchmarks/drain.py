"""Whole workers that empty a backlog of tasks that do nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from alkstore_django.compat import task_finished, task_started
from alkstore_django.models import Job, Run
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker

from . import rows
from .claim import filled
from .database import analyze, clear
from .measure import medians, rate, show
from .processes import Helper
from .raw import Raw


def run(quick: bool) -> None:
    n = 2_000 if quick else 10_000
    logging.getLogger("alkstore_django").setLevel(logging.ERROR)
    raw = Raw()

    def raw_driver(batch: int, count: int) -> Callable[[], float]:
        def measure() -> float:
            filled(count)
            return rate(count, lambda: raw.drain(count, batch))

        return measure

    def worker(task: str = "nothing", observed: bool = False, **options: Any) -> Callable[[], float]:
        def measure() -> float:
            clear()
            rows.live(n, task=task)
            analyze()
            with observing() if observed else nullcontext():
                return drained(n, lambda: Worker(Options(using="default", batch=True, **options)).run())

        return measure

    cases = {
        "raw driver, one by one": raw_driver(1, n // 10),
        "raw driver, batches of 100": raw_driver(100, n),
        "alkworker, defaults": worker(),
        "defaults, signals observed": worker(observed=True),
        "defaults, results not kept": worker("nothing_kept"),
        "--threads 1": worker(threads=1),
        "--threads 1 --prefetch 100": worker(threads=1, prefetch=100),
        "--prefetch 100, signals observed": worker(threads=1, prefetch=100, observed=True),
        "two processes, defaults": lambda: two_processes(n),
    }
    show(f"Drain of {n:,} tasks that do nothing, results kept", medians(cases), "raw driver, one by one")


def drained(n: int, work: Callable[[], object]) -> float:
    found = rate(n, work)
    if (done := Run.objects.filter(status=Run.SUCCEEDED).count()) != n or Job.objects.exists():
        raise RuntimeError(f"{done} of {n} tasks succeeded")
    return found


def two_processes(n: int) -> float:
    workers = [Helper("drain"), Helper("drain")]
    filled(n)

    def work() -> None:
        for each in workers:
            each.go()
        for each in workers:
            each.result()

    return drained(n, work)


@contextmanager
def observing() -> Iterator[None]:
    """Somebody listens to the signals."""

    def receive(**signal: Any) -> None:
        pass

    for signal in (task_started, task_finished):
        signal.connect(receive)
    yield
    for signal in (task_started, task_finished):
        signal.disconnect(receive)
