"""Deleting results whose time is over, beside raw SQL that deletes the same in batches of 500; and a pass
that finds nothing to delete.

Neither takes the breaks that a worker takes.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from django.db import connection

from alkstore_django.pruning import Pass
from alkstore_django.retention import chosen
from alkstore_django.sql import get_dialect, tables

from . import rows
from .database import clear
from .measure import medians, rate, show

BATCH = 500
PICKED = f"SELECT job_id FROM {tables.RESULTS} WHERE expires_at <= %s LIMIT {BATCH}"
RAW = {
    "sqlite": f"DELETE FROM {tables.RESULTS} WHERE job_id IN ({PICKED})",
    "postgresql": f"DELETE FROM {tables.RESULTS} WHERE job_id = ANY(ARRAY({PICKED}))",
    "mysql": f"DELETE FROM {tables.RESULTS} WHERE expires_at <= %s LIMIT {BATCH}",
}


def run(quick: bool) -> None:
    many = 20_000 if quick else 200_000
    cases = {"raw SQL": lambda: _measured(many, _raw), "maintenance": lambda: _measured(many, _ours)}
    show(f"Deleting {many:,} results (rows)", medians(cases), anchor="raw SQL")
    clear()
    rows.results(many, expires_in=3600)
    started = time.perf_counter()
    _ours()
    print(f"  a pass over {many:,} results that stay: {(time.perf_counter() - started) * 1000:.1f} ms")
    clear()


def _measured(many: int, work: Any) -> float:
    clear()
    rows.results(many, expires_in=-1)
    return rate(many, partial(work))


def _ours() -> None:
    steps = Pass("default", chosen("default", ["results"]))
    while steps.step():
        pass


def _raw() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {get_dialect(connection).now}")
        now = cursor.fetchone()[0]
        while cursor.rowcount:
            cursor.execute(RAW[connection.vendor], [now])
