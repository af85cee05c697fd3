"""Operations against each other, in processes of their own: each job is one side's, never both's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alkstore_django.models import Attempt, DeadJob, Job
from alkstore_django.queues import Queue
from tests import factories
from tests.processes import Process, Workers, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Race:
    """Racers by role; all start at once."""

    def __init__(self, workers: Workers, directory: Path, queue: Queue, isolation: str) -> None:
        self.workers = workers
        self.directory = directory
        self.queue = queue
        self.isolation = isolation
        self.racers: dict[str, list[Process]] = {}

    def add(self, role: str, count: int, argument: str = "") -> None:
        line = ("-m", "tests.concurrency.racer", role, self.directory, self.queue.name, argument)
        self.racers[role] = [self.workers.run(*line, ALKSTORE_ISOLATION=self.isolation) for _ in range(count)]

    def start(self) -> None:
        for racers in self.racers.values():
            for racer in racers:
                racer.wait_for("^ready$")
        (self.directory / "go").touch()

    def end(self) -> None:
        (self.directory / "end").touch()

    def achieved(self, role: str) -> list[int]:
        """What all racers of the role did; every one has to end well."""
        found: list[int] = []
        for racer in self.racers[role]:
            assert racer.join(patience=60) == 0, racer
            found += json.loads(racer.lines[-1])
        return found


def isolated(level: str) -> Any:
    return pytest.param(level, marks=pytest.mark.only("postgresql", "mysql"))


@pytest.fixture(params=["", isolated("repeatable read"), isolated("serializable")], ids=lambda level: level)
def race(request: pytest.FixtureRequest, workers: Workers, tmp_path: Path) -> Race:
    return Race(workers, tmp_path, factories.queue(), isolation=request.param)


def test_six_enqueue_and_six_claim(race: Race) -> None:
    race.add("enqueue", 6)
    race.add("claim", 6)
    race.start()
    ids = race.achieved("enqueue")
    assert len(ids) == len(set(ids)) == 6 * 150
    wait_until(lambda: not Job.objects.exists(), *race.racers["claim"], what="the queue is empty")
    race.end()
    assert sorted(race.achieved("claim")) == sorted(ids)
    assert not DeadJob.objects.exists() and not Attempt.objects.exists()


def test_claim_against_cancel(race: Race) -> None:
    ids = race.queue.enqueue_many(range(400))
    race.add("claim_one_by_one", 3)
    race.add("cancel", 3, ",".join(map(str, ids)))
    race.start()
    acked, cancelled = race.achieved("claim_one_by_one"), race.achieved("cancel")
    assert sorted(acked + cancelled) == ids
    assert cancelled, "nothing was cancelled: nothing was shown"


def test_ack_against_reclaim(race: Race) -> None:
    ids = race.queue.enqueue_many(range(80), max_attempts=1_000)
    race.add("claim_late", 4, "1")
    race.start()
    wait_until(lambda: not Job.objects.exists(), *race.racers["claim_late"], what="the queue is empty")
    race.end()
    assert sorted(race.achieved("claim_late")) == ids
    assert Attempt.objects.filter(kind=Attempt.LOST).exists(), "no claim lapsed: nothing was shown"


def test_requeue_against_requeue(race: Race) -> None:
    ids = [factories.dead(job_id, race.queue.name) for job_id in range(1, 301)]
    race.add("requeue", 4, ",".join(map(str, ids)))
    race.start()
    assert sorted(race.achieved("requeue")) == ids
    assert Job.objects.count() == 300 and not DeadJob.objects.exists()
    assert Attempt.objects.filter(kind=Attempt.REQUEUED).count() == 300


def test_fail_against_sweep(race: Race) -> None:
    ids = race.queue.enqueue_many(range(400), expires=2)
    race.add("fail", 3, "1")
    race.add("sweep", 3)
    race.start()
    wait_until(lambda: not Job.objects.exists(), *race.racers["fail"], what="the queue is empty")
    race.end()
    failed, swept = race.achieved("fail"), race.achieved("sweep")
    assert len(failed) == len(set(failed))
    assert sorted(DeadJob.objects.values_list("id", flat=True)) == ids
    buried = DeadJob.objects.filter(last_error="expired").count()
    assert buried >= len(swept) and len(failed) + buried == len(ids)


def test_requeue_against_retention(race: Race) -> None:
    """A dead letter is requeued with its history, or it goes with all that belongs to it."""
    ids = [factories.dead(job_id, race.queue.name, died_at=factories.at(-60)) for job_id in range(1, 401)]
    lines = (Attempt(job_id=job_id, kind=Attempt.FAILED, ended_at=1) for job_id in ids for _ in range(2))
    Attempt.objects.bulk_create(lines)
    race.add("requeue", 2, ",".join(map(str, ids)))
    race.add("prune", 2)
    race.start()
    requeued = race.achieved("requeue")
    wait_until(lambda: not DeadJob.objects.exists(), *race.racers["prune"], what="no dead letter is left")
    race.end()
    pruned = race.achieved("prune")
    assert len(requeued) + len(pruned) == len(ids)
    assert requeued and pruned, "one side did it all: nothing was shown"
    assert sorted(Job.objects.values_list("id", flat=True)) == sorted(requeued)
    told = Attempt.objects.values_list("job_id", flat=True)
    assert sorted(told) == sorted(3 * requeued)
