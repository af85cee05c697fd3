"""Taking jobs out: claim and ack in batches."""

from __future__ import annotations

import json

from alkstore_django.queues import Queue

from . import rows
from .database import analyze, clear
from .measure import medians, rate, show
from .raw import Raw

BATCHES = (1, 8, 32, 100)


def run(quick: bool) -> None:
    n = 800 if quick else 4_000
    raw, queue = Raw(), Queue("default")
    for batch in BATCHES:
        count = n if batch > 1 else n // 4

        def raw_rate(batch: int = batch, count: int = count) -> float:
            filled(n)
            return rate(count, lambda: raw.drain(count, batch))

        def our_rate(batch: int = batch, count: int = count) -> float:
            filled(n)
            return rate(count, lambda: claim_and_ack(queue, count, batch))

        rates = medians({"raw driver": raw_rate, "claim_batch, ack_batch": our_rate})
        show(f"Claim and ack in batches of {batch} ({count:,})", rates, "raw driver")


def filled(n: int) -> None:
    clear()
    rows.live(n)
    analyze()


def claim_and_ack(queue: Queue, n: int, batch: int) -> None:
    for _ in range(n // batch):
        jobs = queue.claim_batch("benchmark", batch)
        if queue.ack_batch(jobs) != batch:
            raise RuntimeError(f"claimed {json.dumps([job.id for job in jobs])} and could not ack them all")
