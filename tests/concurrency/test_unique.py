"""Sixteen processes want the same keys 2,000 times: each key is one job's, and all are told which."""

from __future__ import annotations

import json
from typing import Any

import pytest

from alkstore_django.models import Attempt, DeadJob, Job, Run, UniqueKey
from tests.processes import Workers

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, CALLS = 16, 2_000


class Rivals:
    """What the processes were answered."""

    def __init__(self, workers: Workers, role: str, calls: int = CALLS, isolation: str = "") -> None:
        line = ("-m", "tests.concurrency.rivals", role, PROCESSES, calls // PROCESSES)
        process = workers.run(*line, ALKSTORE_ISOLATION=isolation)
        assert process.join(patience=120) == 0, process
        self.answers: list[list[Any]] = json.loads(process.lines[-1])
        assert len(self.answers) == PROCESSES

    @property
    def created(self) -> list[int]:
        return [job_id for answer in self.answers for job_id, created in answer if created]

    @property
    def ids(self) -> set[int]:
        return {job_id for answer in self.answers for job_id, _ in answer}


def live() -> set[int]:
    return set(Job.objects.values_list("pk", flat=True))


def isolated(level: str) -> Any:
    return pytest.param(level, marks=pytest.mark.only("postgresql", "mysql"))


@pytest.mark.parametrize(
    "isolation",
    ["", isolated("repeatable read"), isolated("serializable")],
    ids=lambda level: level or "usual",
)
def test_one_job_and_all_are_told_which(workers: Workers, isolation: str) -> None:
    rivals = Rivals(workers, "enqueue", isolation=isolation)
    assert sum(map(len, rivals.answers)) == CALLS
    assert len(live()) == len(rivals.created) == 1
    assert rivals.ids == {*rivals.created} == live()
    assert UniqueKey.objects.get().job_id in live()
    assert not Run.objects.exists() and not DeadJob.objects.exists() and not Attempt.objects.exists()


def test_in_transactions_that_may_be_rolled_back(workers: Workers) -> None:
    rivals = Rivals(workers, "enqueue_in_transactions")
    assert rivals.ids == {*rivals.created} == live()
    assert len(live()) == len(rivals.created) == 1


def test_in_bulk(workers: Workers) -> None:
    rivals = Rivals(workers, "enqueue_many")
    assert sum(map(len, rivals.answers)) >= CALLS * 0.9
    assert len(live()) == len(rivals.created) == 10
    assert rivals.ids == {*rivals.created} == live()


def test_replacing(workers: Workers) -> None:
    rivals = Rivals(workers, "replace", calls=480)
    assert len(rivals.created) == len(rivals.ids) == 480
    assert len(live()) == 1
    cancelled = set(Run.objects.filter(status=Run.CANCELLED).values_list("pk", flat=True))
    assert live() | cancelled == rivals.ids and len(cancelled) == 479
