"""Four workers, 2,000 tasks: each runs once; if a worker is killed, at least once."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import transaction

from tests.app import tasks
from tests.processes import Journal, Workers
from tests.queue_state import dead, live, lost, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

TASKS = 2_000


def enqueue_all(journal: Journal, first: int = 0) -> dict[int, str]:
    """The line that each job will write."""
    lines = [f"task-{n}" for n in range(first, first + TASKS)]
    with transaction.atomic():
        return {int(tasks.write.enqueue(journal.path, line).id): line for line in lines}


@pytest.mark.parametrize(
    "isolation", ["", pytest.param("serializable", marks=pytest.mark.only("postgresql", "mysql"))]
)
def test_each_task_runs_exactly_once(workers: Workers, journal: Journal, isolation: str) -> None:
    workers.environment["ALKSTORE_ISOLATION"] = isolation
    for _ in range(4):
        workers.start()
    for worker in workers.processes:
        worker.wait_for(" serves ")
    jobs = enqueue_all(journal)
    workers.wait_until(lambda: not live(), "the queue is empty")
    assert [worker.stop() for worker in workers.processes] == [0, 0, 0, 0]

    assert sorted(journal.keys) == sorted(jobs.values())
    assert len(set(journal.pids)) > 1, "one worker did it all: nothing was shown"
    assert succeeded() == set(jobs)
    assert not dead() and not lost()
    assert not [line for worker in workers.processes for line in worker.lines if " INFO " not in line]


def test_each_task_runs_at_least_once_when_a_worker_is_killed(workers: Workers, journal: Journal) -> None:
    others = [workers.ready("--visibility-timeout", 2) for _ in range(3)]
    jobs: dict[int, str] = {}
    for _ in range(20):  # on a busy machine all may be done before the victim dies: then it is shown again
        victim = workers.ready("--worker-id", "victim", "--visibility-timeout", 2)
        half = len(jobs) + TASKS // 2
        jobs |= enqueue_all(journal, len(jobs))
        workers.wait_until(
            lambda half=half, pid=victim.pid: len(journal.lines) >= half and pid in journal.pids,
            "half of the tasks",
        )
        victim.reap()
        if live():
            break
    else:
        raise AssertionError("all was done before the victim died: nothing was shown")
    workers.wait_until(lambda: not live(), "the queue is empty")
    assert [worker.stop() for worker in others] == [0, 0, 0]

    runs = Counter(journal.keys)
    assert set(runs) == set(jobs.values())
    assert succeeded() == set(jobs)
    assert not dead()
    assert {worker for _, worker in lost()} <= {"victim"}
    twice = {line for line, count in runs.items() if count > 1}
    assert twice <= {jobs[job_id] for job_id, _ in lost()}
    assert max(runs.values()) <= 2
