"""Whether a claim stays flat, whatever else lies in the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

from alkstore_django.queues import Queue

from . import rows
from .claim import claim_and_ack
from .database import ALIASES, analyze, clear
from .measure import columns, rate

DUE = 7_000
"""Rows that are due in every shape; no more than these are claimed."""

ROUNDS = 11


def shapes(quick: bool) -> dict[str, Callable[[], None]]:
    """Name and filling of each backlog; each is compared with a plain one of ``DUE`` rows."""
    million = 100_000 if quick else 1_000_000
    hundred_k, ten_k = million // 10, million // 100

    def also(fill: Callable[[], None]) -> Callable[[], None]:
        def both() -> None:
            fill()
            rows.live(DUE)

        return both

    def in_flight_over_two_priorities() -> None:
        rows.live(ten_k, in_flight=True)
        rows.live(1, priority="-1", due_in=86_400)

    soon, later = rows.live, partial(rows.live, due_in=86_400)
    return {
        f"{hundred_k:,} due": partial(soon, hundred_k),
        f"{million:,} due": partial(soon, million),
        f"+ {hundred_k:,} future, same priority": also(partial(later, hundred_k)),
        f"+ {hundred_k:,} future, higher priority": also(partial(later, hundred_k, priority="9")),
        f"+ {ten_k:,} in flight, one priority": also(partial(soon, ten_k, in_flight=True)),
        f"+ {ten_k:,} in flight, two priorities": also(in_flight_over_two_priorities),
        f"+ {million:,} dead": also(partial(rows.dead, million)),
        f"{hundred_k:,} due, 50 priorities row by row": partial(soon, hundred_k, priority="i %% 50"),
        f"{hundred_k:,} due, 50 priorities in runs": partial(
            soon, hundred_k, priority=f"50 - i * 50 / {hundred_k}"
        ),
    }


def run(quick: bool) -> None:
    columns(
        "Claim and ack beside other rows, jobs/s and ratio to a plain backlog in the same moments",
        ("backlog", "batch of 1", "ratio", "batch of 32", "ratio"),
        [(name, *_measured(fill)) for name, fill in shapes(quick).items()],
    )
    clear()


def _measured(fill: Callable[[], None]) -> list[str]:
    """Rounds on both databases in turn: the disk's moods meet them alike."""
    clear()
    fill()
    analyze()
    clear("plain")
    rows.live(DUE, using="plain")
    analyze("plain")
    cells = []
    for batch, jobs in ((1, 100), (32, 480)):
        rates: dict[str, list[float]] = {alias: [] for alias in ALIASES}
        for _ in range(ROUNDS):
            for alias in ALIASES:
                queue = Queue("default", using=alias)
                rates[alias].append(rate(jobs, partial(claim_and_ack, queue, jobs, batch)))
        ratios = [ours / plain for ours, plain in zip(*rates.values(), strict=True)]
        cells += [f"{median(rates['default']):,.0f}", f"{median(ratios):.2f}"]
    return cells
