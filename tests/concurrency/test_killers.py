"""A job that kills its process: it has its attempts, then it is dead, and it takes nobody with it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from django.db import transaction

from alkstore_django.models import DeadJob, Job
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.processes import Journal, Workers
from tests.queue_state import dead, history, live, lost, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_killer_ends_as_a_dead_letter(workers: Workers, journal: Journal) -> None:
    with transaction.atomic():
        killer = int(tasks.kill_own_process.using(priority=1).enqueue(journal.path, "killer", 0.5).id)
        first = {int(tasks.write.enqueue(journal.path, "first").id) for _ in range(20)}
    codes = []
    later: set[int] = set()
    for start in range(1, 5):
        worker = workers.start("--batch", "--visibility-timeout", 1, "--worker-id", f"worker-{start}")
        if 2 <= start <= 3:
            # The killer runs again, alone by now: jobs that come in meanwhile must wait for its end.
            workers.wait_until(lambda start=start: journal.keys.count("killer") == start, f"start {start}")
            later |= {int(tasks.write.enqueue(journal.path, "later", 1).id) for _ in range(5)}
        codes.append(worker.join())

    assert codes == [-signal.SIGKILL, -signal.SIGKILL, -signal.SIGKILL, 0]
    assert journal.keys.count("killer") == 3
    letter = DeadJob.objects.get()
    assert letter.pk == killer
    assert letter.attempts == 3
    assert "worker-3 vanished in attempt 3 of 3" in letter.last_error
    assert history(killer) == ["lost", "lost", "lost"]
    assert not live()
    assert succeeded() == first | later
    assert {worker for job_id, worker in lost() if job_id != killer} <= {"worker-1"}


def test_a_killer_among_a_hundred(workers: Workers, journal: Journal) -> None:
    """Under a supervisor the work goes on by itself: one is dead in the end, and all others are done."""
    with transaction.atomic():
        healthy = {int(tasks.write.enqueue(journal.path, "healthy").id) for _ in range(50)}
        killer = int(tasks.kill_own_process.using(max_attempts=3).enqueue(journal.path, "killer").id)
        healthy |= {int(tasks.write.enqueue(journal.path, "healthy").id) for _ in range(50)}
    supervisor = workers.start("--processes", 2, "--threads", 4, "--visibility-timeout", 1)
    workers.wait_until(lambda: not live(), "the queue is empty", patience=60)
    supervisor.wait_for(" serves ", 5)  # each of the killed ones has been replaced
    assert supervisor.stop() == 0
    assert journal.keys.count("killer") == 3
    assert set(dead()) == {killer}
    assert "vanished in attempt 3 of 3" in dead()[killer]
    assert history(killer) == ["lost", "lost", "lost"]
    assert succeeded() == healthy
    assert supervisor.count("ERROR alkworker Worker .* was ended by SIGKILL") == 3


def test_a_lapsed_job_does_not_hold_up_a_busy_worker(workers: Workers, journal: Journal, gate: Path) -> None:
    """It waits for an empty process, but others do not wait for it for long; and it is not forgotten."""
    held = int(tasks.hold.enqueue(journal.path, "held", str(gate)).id)
    workers.start()
    workers.wait_until(lambda: journal.lines == ["start held"], "a long task runs")
    with transaction.atomic():
        lapsed = int(tasks.write.enqueue(journal.path, "lapsed").id)
        spent = int(tasks.write.using(max_attempts=1).enqueue(journal.path, "spent").id)
        claimed = Queue("default", visibility_timeout=1).claim_batch("ghost", 2)
    assert [job.id for job in claimed] == [lapsed, spent]
    workers.wait_until(lambda: set(dead()) == {spent}, "the job without an attempt left is dead")
    healthy = int(tasks.write.enqueue(journal.path, "healthy").id)
    workers.wait_until(lambda: healthy in succeeded(), "another job runs", patience=10)
    assert live(id=lapsed, state="processing", worker_id="ghost") == 1
    gate.touch()
    workers.wait_until(lambda: succeeded() == {held, healthy, lapsed}, "the lapsed job runs", patience=10)


def test_many_lapsed_jobs(workers: Workers, journal: Journal) -> None:
    """What a fleet of killed workers leaves behind: one by one, and new jobs do not wait for all of them."""
    with transaction.atomic():
        jobs = [int(tasks.write.enqueue(journal.path, "old").id) for _ in range(600)]
        Job.objects.update(state="processing", worker_id="ghost", attempts=1, claim_expires_at=1)
        Job.objects.filter(id__in=jobs[::2]).update(attempts=3)
    new = int(tasks.write.enqueue(journal.path, "new").id)
    worker = workers.start()
    workers.wait_until(lambda: not live(), "the queue is empty", patience=90)
    assert worker.stop() == 0
    assert succeeded() == {*jobs[1::2], new}
    assert journal.keys.index("new") < 100, "a new job has waited for the old ones"
    assert set(dead()) == set(jobs[::2])
    assert all("worker ghost vanished in attempt 3 of 3" in error for error in dead().values())


def test_jobs_of_a_killed_worker_come_back(workers: Workers, journal: Journal) -> None:
    job_id = int(tasks.hold.enqueue(journal.path, "job", "/nowhere").id)
    victim = workers.start("--visibility-timeout", 1)
    workers.wait_until(lambda: journal.lines == ["start job"], "the task runs")
    victim.reap()
    workers.start("--visibility-timeout", 1)
    workers.wait_until(lambda: len(journal.lines) == 2, "it runs again", patience=10)
    assert history(job_id) == ["lost"]
    assert live(id=job_id, attempts=2, state="processing") == 1
