"""Stopping a worker: what runs may finish, what has not started goes back, a second signal ends it all."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from alkstore_django.models import Attempt, Job
from tests.app import atomic, tasks
from tests.backlog import Backlog
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

STOPS = r"INFO Worker \S+ stops; it waits for 1 tasks"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_one_signal_lets_running_tasks_finish(
    workers: Workers, journal: Journal, tmp_path: Path, number: signal.Signals
) -> None:
    worker = workers.ready("--threads", 1)
    backlog = Backlog(workers, journal, tmp_path)
    worker.send(number)
    worker.wait_for(STOPS)
    if number == signal.SIGHUP:
        worker.send(number)  # a terminal that goes away may say so twice
    later = int(tasks.write.enqueue(journal.path, "later").id)
    assert live(id=backlog.running, state="processing", attempts=1) == 1
    backlog.gate.touch()  # the thread is free, and must not take what was claimed before
    assert worker.join(patience=5) == 0

    assert journal.lines[-2:] == ["start held", "end held"]
    assert backlog.running in succeeded()
    given_back = Job.objects.filter(state="pending", attempts=0).values_list("id", flat=True)
    assert set(given_back) == {*backlog.waiting, later}
    assert not Attempt.objects.exists()


def interrupted(worker: Process, job_id: int, attempts: int) -> None:
    """The worker has ended, and the job that it ran is back, with so many attempts spent."""
    assert worker.join() == 1
    assert live(id=job_id, state="pending", attempts=attempts, worker_id=None) == 1
    assert history(job_id) == ["interrupted"]
    assert "interrupted" in Attempt.objects.get().error
    assert not dead()


@pytest.mark.parametrize(("max_attempts", "spent"), [(3, 1), (1, 0)])
def test_two_signals_interrupt(workers: Workers, journal: Journal, max_attempts: int, spent: int) -> None:
    """The attempt is spent, but never the last one: a stop kills no job."""
    task = tasks.hold.using(max_attempts=max_attempts)
    job_id = int(task.enqueue(journal.path, "held", "/nowhere").id)
    worker = workers.start()
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    worker.send(signal.SIGTERM)
    worker.wait_for(STOPS)
    second = time.monotonic()
    worker.send(signal.SIGTERM)
    interrupted(worker, job_id, spent)
    assert time.monotonic() - second < 3
    assert journal.lines == ["start held"]


def test_the_grace_ends(workers: Workers, journal: Journal) -> None:
    job_id = int(tasks.hold.enqueue(journal.path, "held", "/nowhere").id)
    worker = workers.start("--shutdown-timeout", 1)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    stopped = time.monotonic()
    worker.send(signal.SIGTERM)
    interrupted(worker, job_id, 1)
    assert 1 <= time.monotonic() - stopped < 4


@pytest.mark.parametrize(("max_attempts", "spent"), [(3, 1), (1, 0)])
def test_an_atomic_run_is_undone(workers: Workers, journal: Journal, max_attempts: int, spent: int) -> None:
    """And its job put back, although its claim has lapsed by then: nobody could have taken it."""
    task = atomic.hold_for_long.using(max_attempts=max_attempts)
    job_id = int(task.enqueue(journal.path, "held", "/nowhere").id)
    worker = workers.start("--shutdown-timeout", 3, "--visibility-timeout", 1)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    worker.send(signal.SIGTERM)
    interrupted(worker, job_id, spent)
    assert journal.lines == ["start held"]
    assert not Group.objects.exists()


@pytest.mark.only("postgresql", "mysql")
def test_an_atomic_run_that_cannot_be_cut_off(workers: Workers, journal: Journal) -> None:
    """It sits in a call that Python cannot interrupt: the process ends, and its claim lapses."""
    job_id = int(atomic.block.enqueue(journal.path, "held").id)
    worker = workers.start("--shutdown-timeout", 0)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    stopped = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.join() == 1
    assert 2 <= time.monotonic() - stopped < 5
    assert live(id=job_id, state="processing", attempts=1) == 1
    workers.wait_until(lambda: not Group.objects.exists(), "the database has undone it")


def test_an_interrupted_job_starts_again_at_once(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(tasks.hold.using(max_attempts=1).enqueue(journal.path, "held", str(gate)).id)
    first = workers.start("--shutdown-timeout", 0)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    assert first.stop() == 1
    gate.touch()
    assert workers.start("--batch").join(patience=10) == 0
    assert journal.lines == ["start held", "start held", "end held"]
    assert succeeded() == {job_id}


def test_an_idle_worker_stops_at_once(workers: Workers) -> None:
    """Neither its interval nor its grace is over before anybody's patience."""
    worker = workers.ready("--interval", 600, "--shutdown-timeout", 600)
    assert worker.stop() == 0
    assert worker.count("ends after 0 tasks") == 1


def test_keyboard_interrupt_in_a_task_stops_the_worker(workers: Workers, journal: Journal) -> None:
    job_id = int(tasks.interrupt.enqueue(journal.path).id)
    interrupted(workers.start(), job_id, 1)
    assert journal.lines == ["run"]


def test_short_jobs_do_not_wait_behind_long_ones(workers: Workers, journal: Journal, tmp_path: Path) -> None:
    """A worker that claimed short jobs behind a long one puts them back, and an idle worker takes them."""
    first = workers.ready("--threads", 1)
    backlog = Backlog(workers, journal, tmp_path)
    second = workers.ready()
    workers.wait_until(lambda: live() == 1, "the short jobs are done", patience=5)
    assert live(id=backlog.running, state="processing", attempts=1) == 1
    assert backlog.waiting <= succeeded()
    assert journal.pids_of("short")[-10:] == [second.pid] * 10
    backlog.gate.touch()
    assert [first.stop(), second.stop()] == [0, 0]


def test_nohup(workers: Workers) -> None:
    """Who was started to outlive its terminal does."""
    command = ["-m", "django", "alkworker", "--skip-checks"]
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        f"os.execv(sys.executable, [sys.executable, *{command}])"
    )
    worker = workers.run("-c", script)
    worker.wait_for(" serves ")
    worker.send(signal.SIGHUP)
    done = int(tasks.nothing.enqueue().id)
    workers.wait_until(lambda: succeeded() == {done}, "it goes on")
    assert worker.stop() == 0
