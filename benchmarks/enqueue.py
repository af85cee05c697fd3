"""Putting jobs in: one for each commit, and many at once."""

from __future__ import annotations

import json

from django.db import transaction

from alkstore_django.models import Job
from alkstore_django.queues import Queue

from .database import clear
from .measure import medians, rate, show
from .raw import Raw
from .tasks import nothing


def run(quick: bool) -> None:
    n, bulk = (500, 2_000) if quick else (3_000, 10_000)
    raw, queue, jobs = Raw(), Queue("default"), Job.objects.db_manager("default")

    def each(work: object) -> None:
        for number in range(n):
            work(number)  # type: ignore[operator]

    def in_own_transaction(number: int) -> None:
        with transaction.atomic():
            nothing.enqueue()

    clear()
    rates = medians(
        {
            "raw driver": lambda: rate(n, lambda: raw.enqueue(n)),
            "Queue.enqueue": lambda: rate(n, lambda: each(lambda number: queue.enqueue({"i": number}))),
            "Task.enqueue": lambda: rate(n, lambda: each(lambda number: nothing.enqueue())),
            "Task.enqueue in its own atomic()": lambda: rate(n, lambda: each(in_own_transaction)),
        }
    )
    show(f"Enqueue, one for each commit ({n:,})", rates, "raw driver")
    clear()
    texts = [json.dumps({"i": number}) for number in range(bulk)]
    payloads = [{"i": number} for number in range(bulk)]
    rates = medians(
        {
            "raw driver": lambda: rate(bulk, lambda: raw.enqueue_many(bulk)),
            "Queue.enqueue_many": lambda: rate(bulk, lambda: queue.enqueue_many(payloads)),
            "the same, payloads ready": lambda: rate(
                bulk, lambda: jobs.enqueue_many("default", texts, **READY)
            ),
        }
    )
    show(f"Enqueue {bulk:,} in one transaction", rates, "raw driver")
    clear()


READY = {"run_at": None, "delay": 0, "priority": 0, "expires": None, "max_attempts": 3}
