"""Ten schedulers that all fire at once: each boundary becomes one job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from alkstore_django import schedules
from alkstore_django.models import Job, ScheduleOptions
from tests.contract.scheduling import BASE, at, made
from tests.processes import Workers

pytestmark = pytest.mark.django_db(transaction=True)

SCHEDULERS = 10
START = int(BASE.timestamp())


def raced(
    workers: Workers, directory: Path, count: int, step: int, roles: Sequence[str] = ("tick",) * SCHEDULERS
) -> list[list[tuple[int, int]]]:
    """Job and boundary of all that was fired, by scheduler."""
    racers = [
        workers.run("-m", "tests.concurrency.ticker", role, directory, START, count, step) for role in roles
    ]
    for racer in racers:
        racer.wait_for("^ready$")
    (directory / "go").touch()
    assert [racer.join(patience=120) for racer in racers] == [0] * len(roles)
    return [[(job_id, moment) for job_id, moment in json.loads(racer.lines[-1])] for racer in racers]


def test_500_boundaries(workers: Workers, tmp_path: Path) -> None:
    """Nobody leads: the guard of each firing is all there is."""
    made("s", "* * * * *")
    found = raced(workers, tmp_path, 500, 60)
    fired = sorted(pair for each in found for pair in each)
    assert sorted(moment for _, moment in fired) == [START + n * 60 for n in range(500)]
    assert sorted(Job.objects.values_list("id", flat=True)) == [job_id for job_id, _ in fired]
    assert (at("s").skipped, at("s").next_fire_at is not None) == (0, True)
    assert sum(bool(each) for each in found) > 1, "one scheduler did it all: nothing was shown"


def test_a_backlog_of_many(workers: Workers, tmp_path: Path) -> None:
    """Whoever comes first makes up for a schedule's boundaries, as a whole."""
    for number in range(20):
        made(f"s{number}", "@every 1s", catch_up="all")
    found = raced(workers, tmp_path, 20, 10)
    assert Job.objects.count() == sum(map(len, found)) == 20 * (1 + 19 * 10)
    boundaries = [moment for each in found for _, moment in each]
    assert sorted(boundaries) == sorted(START + n for n in range(1 + 19 * 10) for _ in range(20))
    assert sum(bool(each) for each in found) > 1, "one scheduler did it all: nothing was shown"


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_at_a_strict_isolation(workers: Workers, tmp_path: Path, isolation: str) -> None:
    workers.environment["ALKSTORE_ISOLATION"] = isolation
    made("s", "* * * * *")
    found = raced(workers, tmp_path, 60, 60, ["tick"] * 4)
    assert sorted(moment for each in found for _, moment in each) == [START + n * 60 for n in range(60)]


def test_changes_lose_no_boundary(workers: Workers, tmp_path: Path) -> None:
    made("s", "* * * * *")
    found = raced(workers, tmp_path, 60, 60, ["tick", "tick", "amend", "amend"])
    assert sorted(moment for each in found for _, moment in each) == [START + n * 60 for n in range(60)]
    assert at("s").priority == 59


def test_what_is_fired_is_what_is_stored(workers: Workers, tmp_path: Path) -> None:
    """The three that tick read the schedule while the fourth changes it."""
    made("s", "@every 1s")
    found = raced(workers, tmp_path, 300, 1, ["tick", "tick", "tick", "rename"])
    fired = sorted(moment for each in found for _, moment in each)
    assert fired == [START + n for n in range(300)]


def test_workers_that_start_at_once_make_one_schedule(workers: Workers, tmp_path: Path) -> None:
    raced(workers, tmp_path, 30, 0, ["register"] * 4)
    assert len(schedules.list()) == ScheduleOptions.objects.count() == 30
    assert {each.owner for each in schedules.list()} == {"admin"}
