"""How long another process waits for its INSERT while a worker's tasks hold the CPU."""

from __future__ import annotations

import logging
import threading

from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker

from . import rows
from .database import clear
from .measure import columns
from .processes import Helper


def run(quick: bool) -> None:
    logging.getLogger("alkstore_django").setLevel(logging.ERROR)
    found = [_measure(threads, prefetch) for threads in (1, 4) for prefetch in (1, 32)]
    found += [_measure(0, 0)]
    columns(
        "INSERT of another process beside tasks of 5 ms pure Python, milliseconds",
        ("worker", "INSERTs", "p50", "p90", "p99", "max"),
        found,
    )


def _measure(threads: int, prefetch: int) -> tuple[str, ...]:
    clear()
    rows.live(2_000, task="busy")
    helper = Helper("insert")
    worker = Worker(Options(using="default", threads=threads or 1, prefetch=prefetch or 1))
    running = threading.Timer(2.5, worker.stop)
    if threads:
        running.start()
        threading.Timer(0.2, helper.go).start()
        worker.run()
    else:
        helper.go()
    took = sorted(helper.result())
    cells = [took[min(len(took) - 1, int(len(took) * share))] for share in (0.5, 0.9, 0.99, 1)]
    name = f"{threads} threads, prefetch {prefetch}" if threads else "none"
    return (name, str(len(took)), *(f"{each:,.1f}" for each in cells))
