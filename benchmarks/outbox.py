"""Events in the transactions of a caller who writes a row of his own, and a worker that delivers them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from alkstore_django import registry
from alkstore_django.models import Job, OutboxEvent, OutboxKey
from alkstore_django.outbox import Outbox, outbox
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker
from alkstore_django.sql import tables

from .database import analyze, clear
from .measure import medians, rate, show
from .raw import INSERT, Raw

KEYS = 100

ROW = f"INSERT INTO {tables.RESULTS} (job_id, value) VALUES (%s, '1')"
"""The caller's."""


def run(quick: bool) -> None:
    n, many = (300, 1_000) if quick else (2_000, 10_000)
    logging.getLogger("alkstore_django").setLevel(logging.ERROR)
    raw = Raw()
    with declared() as events:
        payload = {"order": 7}

        def each(write: Callable[[int], object]) -> Callable[[], float]:
            """Transactions with a row of the caller's, and what ``write`` adds."""

            def measure() -> float:
                forget()
                return rate(n, lambda: [in_transaction(raw, number, write) for number in range(n)])

            return measure

        cases = {
            "the caller's row alone": each(lambda number: None),
            "and a plain INSERT": each(
                lambda number: raw.execute(INSERT, (events.queue_name, json.dumps(payload)))
            ),
            "and an event": each(lambda number: events.enqueue(payload)),
            f"and one of {KEYS} keys": each(lambda number: events.enqueue(payload, key=number % KEYS)),
        }
        show(
            f"Transactions of a caller, each with a row of its own ({n:,})",
            medians(cases),
            "and a plain INSERT",
        )

        def delivered(keys: int) -> Callable[[], float]:
            wanted = [number % keys for number in range(many)] if keys else None
            return lambda: relayed(events, payload, many, wanted)

        cases = {
            "without keys": delivered(0),
            "1,000 keys": delivered(1_000),
            f"{KEYS} keys": delivered(KEYS),
            "one key": lambda: relayed(events, payload, many // 20, ["k"] * (many // 20)),
        }
        show(f"Delivery of {many:,} events to a function that does nothing", medians(cases), "without keys")
    with declared(batch=100) as heaps:
        cases = {"in lists of 100": lambda: relayed(heaps, payload, many)}
        show("The same", medians(cases), "in lists of 100")
    forget()


def in_transaction(raw: Raw, number: int, write: Callable[[int], object]) -> None:
    with transaction.atomic():
        raw.execute(ROW, (number,))
        write(number)


def relayed(events: Outbox, payload: Any, many: int, keys: list[Any] | None = None, **options: Any) -> float:
    """Events a second, delivered by a worker."""
    forget()
    events.enqueue_many([payload] * many, keys=keys)
    analyze()
    chosen = Options(using="default", queues=[events.queue_name], batch=True, scheduler=False, **options)
    found = rate(many, lambda: Worker(chosen).run())
    if Job.objects.exists():
        raise RuntimeError("not all was delivered")
    return found


def forget() -> None:
    clear()
    for model in (OutboxEvent, OutboxKey):
        model._base_manager.all().delete()


@contextmanager
def declared(**options: Any) -> Iterator[Outbox]:
    @outbox("benchmark", **options)
    def deliver(event: Any) -> None: ...

    try:
        yield deliver
    finally:
        del registry._handlers[deliver.queue_name]
