"""Eight processes call under one limit: no window counts more than that, nor allows more than it counts."""

from __future__ import annotations

import json

import pytest

from alkstore_django.models import RateLimit, RatePeriod
from tests.concurrency.caller import NAME
from tests.processes import Workers

pytestmark = pytest.mark.django_db(transaction=True)

CALLERS = 8
LONG = 10**9
"""Seconds: the next window begins in 2033."""


def called(
    workers: Workers, calls: int, limit: int, per: int, role: str = "call", **environment: str
) -> tuple[int, int, dict[int, int]]:
    """How many calls were allowed and refused, and what each window has counted."""
    line = ("-m", "tests.concurrency.caller", role, CALLERS, calls, limit, per)
    process = workers.run(*line, **environment)
    assert process.join(patience=120) == 0, process
    answers: list[dict[str, int]] = json.loads(process.lines[-1])
    counts = dict(RateLimit.objects.filter(name=NAME).values_list("window_start", "count"))
    assert all(0 < count <= limit for count in counts.values()), counts
    assert all(start % per == 0 for start in counts)
    assert RatePeriod.objects.get().seconds == per
    return sum(each["allowed"] for each in answers), sum(each["refused"] for each in answers), counts


def test_one_window(workers: Workers) -> None:
    allowed, refused, counts = called(workers, calls=50, limit=100, per=LONG)
    assert allowed == sum(counts.values()) and allowed + refused == 400
    assert max(counts.values()) == 100


def test_one_second_after_the_other(workers: Workers) -> None:
    allowed, refused, counts = called(workers, calls=150, limit=20, per=1)
    assert allowed == sum(counts.values()) and allowed + refused == 1200 and refused > 0


def test_what_is_rolled_back_does_not_count(workers: Workers) -> None:
    role = "in_a_transaction"
    allowed, refused, counts = called(workers, calls=30, limit=50, per=LONG, role=role)
    assert allowed == sum(counts.values()) and allowed + refused == 160
    assert max(counts.values()) == 50


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_at_a_strict_isolation(workers: Workers, isolation: str) -> None:
    environment = {"ALKSTORE_ISOLATION": isolation}
    allowed, _, counts = called(workers, calls=30, limit=60, per=LONG, **environment)
    assert allowed == sum(counts.values()) and max(counts.values()) == 60
