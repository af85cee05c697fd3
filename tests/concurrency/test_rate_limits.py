"""Eight processes call under one limit: no window counts more than that, nor allows more than it counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alkstore_django.models import RateLimit, RatePeriod
from tests.concurrency.caller import NAME
from tests.processes import Workers

pytestmark = pytest.mark.django_db(transaction=True)

CALLERS = 8
LONG = 10**9
"""Seconds: the next window begins in 2033."""


def called(
    workers: Workers,
    directory: Path,
    *,
    calls: int,
    limit: int,
    per: int,
    role: str = "call",
    **environment: str,
) -> tuple[int, int, dict[int, int]]:
    """How many calls were allowed and refused, and what each window has counted."""
    line = ("-m", "tests.concurrency.caller", role, directory, calls, limit, per)
    callers = [workers.run(*line, **environment) for _ in range(CALLERS)]
    for each in callers:
        each.wait_for("^ready$")
    (directory / "go").touch()
    assert [each.join(patience=120) for each in callers] == [0] * CALLERS
    answers: list[Any] = [json.loads(each.lines[-1]) for each in callers]
    counts = dict(RateLimit.objects.filter(name=NAME).values_list("window_start", "count"))
    assert all(0 < count <= limit for count in counts.values()), counts
    assert all(start % per == 0 for start in counts)
    assert RatePeriod.objects.get().seconds == per
    return sum(each["allowed"] for each in answers), sum(each["refused"] for each in answers), counts


def test_one_window(workers: Workers, tmp_path: Path) -> None:
    allowed, refused, counts = called(workers, tmp_path, calls=50, limit=100, per=LONG)
    assert allowed == sum(counts.values()) and allowed + refused == 400
    assert max(counts.values()) == 100


def test_one_second_after_the_other(workers: Workers, tmp_path: Path) -> None:
    allowed, refused, counts = called(workers, tmp_path, calls=150, limit=20, per=1)
    assert allowed == sum(counts.values()) and allowed + refused == 1200 and refused > 0


def test_what_is_rolled_back_does_not_count(workers: Workers, tmp_path: Path) -> None:
    role = "in_a_transaction"
    allowed, refused, counts = called(workers, tmp_path, calls=30, limit=50, per=LONG, role=role)
    assert allowed == sum(counts.values()) and allowed + refused == 160
    assert max(counts.values()) == 50


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_at_a_strict_isolation(workers: Workers, tmp_path: Path, isolation: str) -> None:
    environment = {"ALKSTORE_ISOLATION": isolation}
    allowed, _, counts = called(workers, tmp_path, calls=30, limit=60, per=LONG, **environment)
    assert allowed == sum(counts.values()) and max(counts.values()) == 60
