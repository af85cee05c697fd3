"""The order of claim: priority (highest first), run_at, id; of batches and over many of them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import connection

from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from alkstore_django.turns import Wish, take
from tests import factories
from tests.factories import at, now

pytestmark = pytest.mark.django_db


def rank(row: dict[str, Any]) -> tuple[int, int, int]:
    return (-row["priority"], row["run_at"], row["id"])


def fill(queue: Queue, rng: random.Random, priorities: int, count: int = 120) -> list[int]:
    """Rows of every sort; the ids of those that can be claimed, in the order in which they should be."""
    start = now()
    rows = []
    for _ in range(count):
        row = {
            "priority": rng.randrange(priorities) - priorities // 2,
            "run_at": start - rng.randrange(5, 12),
            "attempts": rng.choice([0, 0, 0, 1]),
            "max_attempts": 3,
            "state": "pending",
            "expires_at": None,
            "worker_id": None,
            "claim_expires_at": None,
        }
        kind = rng.choice(["due", "due", "due", "future", "expired", "exhausted", "in flight", "lapsed"])
        row |= {
            "due": {},
            # With one priority SQLite claims through another index.
            "future": {
                "run_at": start + 1000,
                "priority": row["priority"] + 5 * rng.randrange(min(priorities, 2)),
            },
            "expired": {"expires_at": start - 1},
            "exhausted": {"attempts": 3},
            "in flight": {
                "state": "processing",
                "worker_id": "x",
                "claim_expires_at": start + 500,
                "attempts": 1,
            },
            "lapsed": {"state": "processing", "worker_id": "x", "claim_expires_at": start - 5, "attempts": 1},
        }[kind]
        row["kind"] = kind
        rows.append(row)
    for row in rows:
        kind = row.pop("kind")
        row["id"] = factories.live(queue.name, **row)
        row["kind"] = kind
    due = [row for row in rows if row["kind"] in ("due", "lapsed")]
    return [row["id"] for row in sorted(due, key=rank)]


@pytest.mark.parametrize("priorities", [1, 2, 5, 50])
@pytest.mark.parametrize("size", [1, 7, 200])
def test_random_rows(queue: Queue, priorities: int, size: int) -> None:
    expected = fill(queue, random.Random(priorities * size), priorities)
    found: list[int] = []
    while batch := queue.claim_batch("w", size):
        found += [job.id for job in batch]
    assert found == expected


@pytest.mark.parametrize("priorities", [1, 5])
def test_the_claims_of_a_worker(queue: Queue, priorities: int) -> None:
    expected = fill(queue, random.Random(priorities), priorities)
    lapsed = set(Job.objects.filter(queue=queue.name, state="processing").values_list("id", flat=True))
    found: list[int] = []
    while claims := take("default", "w", [], [Wish(queue.name, 9, 60, tasks_only=False)], 9).claims:
        found += [claim.id for claim in claims]
    assert found == [
        job_id for job_id in expected if job_id not in lapsed
    ]  # those it claims alone, elsewhere


def test_lapsed_claims_take_their_old_place(queue: Queue) -> None:
    low, first, second, high = (
        factories.live(queue.name, priority=priority, run_at=at(run_at))
        for priority, run_at in ((0, -50), (1, -20), (1, -10), (2, -1))
    )
    factories.change(first, state="processing", worker_id="gone", claim_expires_at=at(-1), attempts=1)
    factories.change(low, state="processing", worker_id="gone", claim_expires_at=at(-1), attempts=1)
    factories.change(low, claimed_at=at(-60))
    assert [job.id for job in queue.claim_batch("w", 3)] == [high, first, second]
    held = factories.columns(low, "state", "attempts", "worker_id", "claim_expires_at", "claimed_at")
    assert held == ("pending", 1, None, None, None)
    assert [job.id for job in queue.claim_batch("w", 3)] == [low]


@pytest.mark.only("postgresql", "mysql")  # SQLite's planner would sort the backlog: see test_plans.py
def test_the_order_is_asked_for() -> None:
    """The index gives it anyway, as long as the server walks it; only ORDER BY promises it."""
    dialect = get_dialect(connection)
    name = "claim_pending" if dialect.claims_in_one_statement else "pick_pending"
    assert "ORDER BY run_at, id LIMIT" in getattr(dialect, name)(False)


def test_ties_go_by_id(queue: Queue) -> None:
    made = [queue.enqueue(number, run_at=1_000, priority=7) for number in range(20)]
    assert [job.id for job in queue.claim_batch("w", 20)] == made


def test_extreme_priorities(queue: Queue) -> None:
    made = [
        factories.live(queue.name, priority=priority, run_at=at(-1))
        for priority in (2**63 - 1, 2**31 - 1, 1, 0, -1, -(2**31), -(2**63))
    ]
    assert [job.id for job in queue.claim_batch("w", 4)] == made[:4]
    assert [job.id for job in queue.claim_batch("w", 4)] == made[4:]
