"""Notifications: what one costs, and how soon it is heard, from the return of the call to the iteration."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

from django.db import transaction

from alkstore_django import notifications
from alkstore_django.sql import tables

from .measure import columns, medians, rate, show
from .processes import Helper
from .raw import Raw
from .wake import share

INSERT = f"INSERT INTO {tables.NOTIFICATIONS} (channel, payload) VALUES (%s, %s)"
ROUNDS = 2
WARM = 3


def run(quick: bool) -> None:
    n = 500 if quick else 5_000
    raw = Raw()

    def insert() -> None:
        for number in range(n):
            raw.execute(INSERT, ("benchmark", json.dumps({"i": number})))

    def insert_together() -> None:
        raw.execute("BEGIN")
        insert()
        raw.execute("COMMIT")

    def notify() -> None:
        for number in range(n):
            notifications.notify("benchmark", {"i": number})

    def notify_together() -> None:
        with transaction.atomic():
            notify()

    def notify_many() -> None:
        notifications.notify_many("benchmark", ({"i": number} for number in range(n)))

    def measured(work: Callable[[], None]) -> Callable[[], float]:
        return lambda: rate(n, work)

    show(
        f"Notify, a transaction for each ({n:,})",
        medians({"raw INSERT": measured(insert), "notify": measured(notify)}),
        "raw INSERT",
    )
    show(
        f"Notify, one transaction ({n:,})",
        medians(
            {
                "raw INSERT": measured(insert_together),
                "notify": measured(notify_together),
                "notify_many": measured(notify_many),
            }
        ),
        "raw INSERT",
    )
    samples = 15 if quick else 100
    waited: dict[str, list[float]] = {"raw, each ms or LISTEN": [], "listen": []}
    for _ in range(ROUNDS):
        for name, work in zip(waited, ("follow", "hear"), strict=True):
            waited[name] += _waits(work, samples)
    columns(
        f"Heard by another process, milliseconds ({ROUNDS * samples} notifications, 50 to 100 ms apart)",
        ("", "p50", "p90", "p99", "max"),
        [
            (name, *(f"{share(found, each):.2f}" for each in (0.5, 0.9, 0.99, 1)))
            for name, found in waited.items()
        ],
    )


def _waits(work: str, samples: int) -> list[float]:
    helper = Helper(work)
    returned = []
    for number in range(samples + WARM):
        time.sleep(random.uniform(0.05, 0.1))
        notifications.notify("benchmark", number)
        returned.append(time.monotonic())
    time.sleep(1)
    helper.go()
    heard = dict(helper.result())
    return [(heard[number] - returned[number]) * 1000 for number in range(WARM, samples + WARM)]
