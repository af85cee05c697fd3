"""Settings of a worker that tells how long its longest DELETE took: by the clock, and of its own processor's
time, which does not count what other processes took."""

from __future__ import annotations

import time
from typing import Any

from django.db.backends.signals import connection_created

from tests.failures.quiet import *  # noqa: F403

ALKSTORE = {"NOTIFICATION_TTL": 7 * 86_400}


class Stopwatch:
    def __init__(self) -> None:
        self.longest = self.busiest = 0.0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith("DELETE"):
            return execute(sql, params, many, context)
        started, began = time.perf_counter(), time.thread_time()
        try:
            return execute(sql, params, many, context)
        finally:
            took, worked = time.perf_counter() - started, time.thread_time() - began
            if took > self.longest or worked > self.busiest:
                self.longest, self.busiest = max(took, self.longest), max(worked, self.busiest)
                print(f"longest DELETE {self.longest:.4f} {self.busiest:.4f}", flush=True)


STOPWATCH = Stopwatch()


def watch(connection: Any, **kwargs: Any) -> None:
    connection.execute_wrappers.append(STOPWATCH)


connection_created.connect(watch, dispatch_uid="tests.failures.timed")
