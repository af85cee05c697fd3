"""A claim lasts as long as its worker lives, not as long as its visibility timeout."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from django.db import connection

from alkstore_django.models import Job, Run
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from tests.app import short_claims, tasks
from tests.backlog import Backlog
from tests.processes import Journal, Workers
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_task_may_last_longer_than_its_claim(workers: Workers, journal: Journal) -> None:
    """One that sleeps and one that keeps the interpreter busy, with two workers that would take them."""
    jobs = [
        int(task.enqueue(journal.path, name, 5).id)
        for task, name in ((tasks.nap, "nap"), (tasks.spin, "spin"))
    ]
    for _ in range(2):
        workers.start("--visibility-timeout", 2)
    deadlines: dict[int, set[int]] = {job_id: set() for job_id in jobs}

    def watch() -> bool:
        for job_id, deadline in Job.objects.filter(state="processing").values_list("id", "claim_expires_at"):
            deadlines[job_id].add(deadline)
        return not live()

    workers.wait_until(watch, "both are done")
    assert sorted(journal.lines) == ["end nap", "end spin", "start nap", "start spin"]
    assert [Run.objects.get(pk=job_id).attempts for job_id in jobs] == [1, 1]
    assert not dead() and [history(job_id) for job_id in jobs] == [[], []]
    for job_id in jobs:
        assert len(deadlines[job_id]) >= 4, "the claim was not extended all along"
        assert max(deadlines[job_id]) - min(deadlines[job_id]) >= 4


def test_each_claim_is_extended_by_its_own_length(workers: Workers, journal: Journal) -> None:
    """Two queues in one worker, two seconds and ten minutes: neither counts for the other."""
    short = int(short_claims.nap.enqueue(journal.path, "short", 5).id)
    long = int(tasks.nap.enqueue(journal.path, "long", 5).id)
    for _ in range(2):
        arguments = ("--queue", "default", "--queue", "short", "--visibility-timeout", 600)
        workers.start(*arguments, DJANGO_SETTINGS_MODULE="tests.concurrency.short_claims")
    left: dict[int, list[int]] = {short: [], long: []}

    def watch() -> bool:
        with connection.cursor() as cursor:
            now = get_dialect(connection).now
            cursor.execute(
                f"SELECT id, claim_expires_at - {now} FROM _honker_live WHERE state = 'processing'"
            )
            for job_id, seconds in cursor.fetchall():
                left[job_id].append(seconds)
        return not live()

    workers.wait_until(watch, "both are done")
    assert sorted(journal.lines) == ["end long", "end short", "start long", "start short"]
    assert [Run.objects.get(pk=job_id).attempts for job_id in (short, long)] == [1, 1]
    assert set(left[short]) <= {0, 1, 2}
    assert min(left[long]) > 590


def test_a_worker_that_was_frozen_finds_its_claim_lost(
    workers: Workers, journal: Journal, gate: Path
) -> None:
    job_id = int(tasks.hold.enqueue(journal.path, "job", str(gate)).id)
    frozen = workers.start("--visibility-timeout", 1, "--worker-id", "frozen")
    workers.wait_until(lambda: journal.lines == ["start job"], "the task runs")
    frozen.freeze()
    heir = workers.start("--visibility-timeout", 1, "--worker-id", "heir")
    workers.wait_until(lambda: len(journal.lines) == 2, "another worker has taken the job")
    gate.touch()
    workers.wait_until(lambda: not live(), "the job is done")
    frozen.send(signal.SIGCONT)
    frozen.wait_for(r"WARNING Job id=\d+ of queue=default: the claim of attempt 1 was lost")
    assert [frozen.stop(), heir.stop()] == [0, 0]

    run = Run.objects.get()
    assert (run.pk, run.worker_id, run.attempts) == (job_id, "heir", 2)
    assert history(job_id) == ["lost"]


def test_lost_claims_that_wait_for_a_thread_are_not_run(
    workers: Workers, journal: Journal, tmp_path: Path
) -> None:
    worker = workers.ready("--threads", 1, "--visibility-timeout", 1)
    backlog = Backlog(workers, journal, tmp_path)
    worker.freeze()
    lines = len(journal.lines)
    claimed = Job.objects.filter(state="processing")
    deadline = max(claimed.values_list("claim_expires_at", flat=True)) or 0
    lost = claimed.count()
    workers.wait_until(lambda: time.time() > deadline + 2, "the claims have lapsed")
    assert len(Queue("default").claim_batch("another", 20)) == 11
    worker.send(signal.SIGCONT)
    worker.wait_for("the claim of attempt 1 was lost", lost)
    backlog.gate.touch()
    probe = int(tasks.write.enqueue(journal.path, "probe").id)
    workers.wait_until(lambda: probe in succeeded(), "the thread goes on with other jobs")
    assert journal.lines[lines:] == ["end held", f"probe {worker.pid}"]


@pytest.mark.parametrize("taken", [False, True], ids=["lapsed", "put back by another"])
def test_a_job_never_runs_twice_in_one_worker(
    workers: Workers, journal: Journal, gate: Path, taken: bool
) -> None:
    """A worker that was frozen may take its lost job again, but the first run has to end before."""
    job_id = int(tasks.hold.enqueue(journal.path, "job", str(gate)).id)
    worker = workers.start("--visibility-timeout", 1)
    workers.wait_until(lambda: journal.lines == ["start job"], "the task runs")
    worker.freeze()
    deadline = Job.objects.get(pk=job_id).claim_expires_at or 0
    workers.wait_until(lambda: time.time() > deadline + 2, "the claim has lapsed")
    if taken:
        queue = Queue("default")
        job = queue.claim_one("another")
        assert job is not None and queue.retry(job)
    worker.send(signal.SIGCONT)
    worker.wait_for("the claim of attempt 1 was lost")
    probe = int(tasks.write.enqueue(journal.path, "probe").id)
    workers.wait_until(lambda: live() == 1, "the worker does other things meanwhile")
    gate.touch()
    workers.wait_until(lambda: not live(), "the job is done")
    assert [line for line in journal.lines if "job" in line] == ["start job", "end job"] * 2
    assert succeeded() == {job_id, probe}
    assert Run.objects.get(pk=job_id).attempts == (3 if taken else 2)
