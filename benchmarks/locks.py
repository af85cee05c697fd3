"""Locks and rate limits: how long it takes to have a lock and give it back, and to count a call."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

from alkstore_django.locks import LockHeld, lock
from alkstore_django.rate_limits import try_acquire
from alkstore_django.sql import tables

from .measure import medians, rate, show
from .raw import Raw

TAKE = f"INSERT INTO {tables.LOCKS} (name, owner, expires_at) VALUES (%s, %s, %s)"
GIVE_BACK = f"DELETE FROM {tables.LOCKS} WHERE name = %s AND owner = %s"
LOOK = f"SELECT owner, expires_at FROM {tables.LOCKS} WHERE name = %s"
RENEW = f"UPDATE {tables.LOCKS} SET expires_at = %s WHERE name = %s AND owner = %s AND expires_at > %s"
COUNT = f"UPDATE {tables.RATE_LIMITS} SET count = count + 1 WHERE name = %s AND window_start = %s"
OPEN = f"INSERT INTO {tables.RATE_LIMITS} (name, window_start, count) VALUES (%s, %s, 1)"
LONG = 10**9


def run(quick: bool) -> None:
    n = 300 if quick else 3_000
    raw, named = Raw(), lock("benchmark")
    later = int(time.time()) + 10_000

    def cases(**works: Callable[[], object]) -> dict[str, Callable[[], float]]:
        return {
            name.replace("_", " "): lambda work=work: rate(n, lambda: _each(n, work))  # type: ignore[misc]
            for name, work in works.items()
        }

    def take_and_give_back() -> None:
        raw.execute(TAKE, ("raw", "me", later))
        raw.execute(GIVE_BACK, ("raw", "me"))

    def block() -> None:
        with named:
            pass

    show(
        f"Have a lock, and give it back ({n:,})",
        medians(cases(raw_driver=take_and_give_back, lock=block)),
        "raw driver",
    )
    with lock("held") as held:
        refused = lock("held")

        def refuse() -> None:
            try:
                refused.acquire()
            except LockHeld:
                return

        show(
            "Ask for one that is held",
            medians(cases(raw_driver=lambda: raw.execute(LOOK, ("held",)).fetchall(), lock=refuse)),
            "raw driver",
        )
        row = (later, "held", held.owner, 0)
        show(
            "Renew one",
            medians(cases(raw_driver=lambda: raw.execute(RENEW, row), renew=held.renew)),
            "raw driver",
        )
    raw.execute(OPEN, ("raw", 0))
    show(
        "Count a call",
        medians(
            cases(
                raw_driver=lambda: raw.execute(COUNT, ("raw", 0)),
                try_acquire=lambda: try_acquire("calls", 2**31 - 1, LONG),
            )
        ),
        "raw driver",
    )
    try_acquire("full", 1, LONG)
    show(
        "Refuse a call",
        medians(
            cases(
                raw_driver=lambda: raw.execute(f"{COUNT} AND count < 1", ("raw", 0)),
                try_acquire=lambda: try_acquire("full", 1, LONG),
            )
        ),
        "raw driver",
    )
    with connection.cursor() as cursor:
        for table in (tables.LOCKS, tables.LOCK_TOKENS, tables.RATE_LIMITS, tables.RATE_PERIODS):
            cursor.execute(f"DELETE FROM {table}")


def _each(n: int, work: Callable[[], object]) -> None:
    for _ in range(n):
        work()
