"""Atomic tasks in real workers: killed at the commit, side by side, in each other's way."""

from __future__ import annotations

import random
import signal
import threading
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import connections, transaction

from alkstore_django import queues, turns
from alkstore_django.models import Job, Run
from tests.app import atomic, tasks
from tests.factories import ask, at, claimed
from tests.processes import Journal, Process, Workers, wait_until
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = ("--visibility-timeout", 1, "--interval", 0.05)
KILLS = 8


@pytest.mark.parametrize("where", ["body", "before", "after"])
def test_a_kill_leaves_both_or_neither(workers: Workers, journal: Journal, where: str) -> None:
    job_id = int(atomic.killed.enqueue(journal.path, where).id)
    assert workers.start(*SHORT).join() == -signal.SIGKILL
    committed = where == "after"
    assert Group.objects.count() == (1 if committed else 0)
    assert (job_id in succeeded()) is committed
    assert live() == (0 if committed else 1)

    assert workers.start(*SHORT, "--batch").join() == 0
    assert Group.objects.count() == 1
    assert succeeded() == {job_id}
    assert journal.lines == (["run"] if committed else ["run", "run"])
    assert history(job_id) == ([] if committed else ["lost"])


def assert_both_or_neither() -> None:
    """In one look: a server may still be at a commit that a killed worker has asked for."""
    groups, runs = Group._meta.db_table, Run._meta.db_table
    ((made, done),) = ask(f"SELECT (SELECT count(*) FROM {groups}), (SELECT count(*) FROM {runs})")
    assert made == done


def test_kills_at_any_moment(workers: Workers) -> None:
    """Among so many some hit a commit. Each name is made once: the effects of a second run would collide."""
    task = atomic.make_group.using(max_attempts=KILLS + 1)  # each kill may spend an attempt of the same job
    jobs = {int(result.id) for result in task.enqueue_many([(f"{n}",) for n in range(150)])}
    dice = random.Random(5)
    for _ in range(KILLS):
        worker = workers.ready(*SHORT)
        before = Group.objects.count()
        workers.wait_until(lambda before=before: Group.objects.count() > before or not live(), "it works")
        time.sleep(dice.uniform(0, 0.05))  # anywhere
        worker.stop(signal.SIGKILL)
        assert_both_or_neither()
    assert workers.start(*SHORT, "--batch").join(60) == 0
    assert succeeded() == jobs
    assert Group.objects.count() == 150
    assert not dead()


def test_two_workers(workers: Workers) -> None:
    jobs = {int(result.id) for result in atomic.make_group.enqueue_many([(f"{n}",) for n in range(100)])}
    both = [workers.start("--batch") for _ in range(2)]
    assert [worker.join(60) for worker in both] == [0, 0]
    assert succeeded() == jobs
    assert Group.objects.count() == 100
    assert not any(worker.count("WARNING|ERROR") for worker in both)


@pytest.mark.only("sqlite")
def test_the_clerk_has_its_turns_between_atomic_tasks(workers: Workers, journal: Journal) -> None:
    """They stand in line for seconds; what comes in between, of a higher priority, does not."""
    atomic.nap.enqueue_many([(journal.path, number, 0.15) for number in range(40)])
    worker = workers.start("--threads", 4)
    workers.wait_until(lambda: journal.lines, "the first one runs")
    probes = 0
    while len(journal.lines) < 70:
        job_id = int(tasks.nothing.using(priority=5).enqueue().id)
        workers.wait_until(lambda job_id=job_id: job_id in succeeded(), "the probe is done")
        probes += len(journal.lines) < 80
    assert probes >= 3
    workers.wait_until(lambda: not live(), "all are done")
    expected = [f"{edge} {number}" for number in range(40) for edge in ("start", "end")]
    assert journal.lines == expected
    assert worker.count("trouble|WARNING|ERROR") == 0


@pytest.mark.only("postgresql", "mysql")
def test_elsewhere_they_run_side_by_side(workers: Workers, journal: Journal, gate: Path) -> None:
    for name in ("one", "two"):
        atomic.hold.enqueue(journal.path, name, str(gate))
    workers.start("--threads", 2)
    workers.wait_until(lambda: len(journal.lines) == 2, "both have started")
    gate.touch()
    workers.wait_until(lambda: not live(), "both are done")


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("number", [1, 2])
def test_a_run_longer_than_its_claim(workers: Workers, journal: Journal, gate: Path, number: int) -> None:
    """Nobody can take the job, and nobody stands still because of it, its own worker neither."""
    job_id = int(atomic.hold.enqueue(journal.path, "long", str(gate)).id)
    pair = [workers.ready(*SHORT, "--threads", 2) for _ in range(number)]
    workers.wait_until(lambda: journal.lines == ["start long"], "it runs")
    deadline = time.monotonic() + 4  # it is the length of time that is in question
    while time.monotonic() < deadline:
        probe = int(tasks.nothing.enqueue().id)
        workers.wait_until(lambda probe=probe: probe in succeeded(), "the others go on")
    gate.touch()
    workers.wait_until(lambda: job_id in succeeded(), "it is done")
    assert history(job_id) == []
    assert journal.lines == ["start long", "end long"]
    assert {worker.stop() for worker in pair} == {0}
    assert not any(worker.count(f"Job id={job_id} .*(lost|vanished)") for worker in pair)


@pytest.mark.only("postgresql", "mysql")
def test_what_a_run_has_locked_is_not_looked_for(gate: Path) -> None:
    """Its claim has lapsed as far as others see, who would look again and again for what they cannot take."""
    job_id = claimed("default", '{"__honker_task__": {}}', claim_expires_at=at(-1))
    has_locked = threading.Event()

    def lock() -> None:
        with transaction.atomic():
            Job.objects.select_for_update().get(pk=job_id)
            has_locked.set()
            wait_until(gate.exists)
        connections.close_all()

    thread = threading.Thread(target=lock)
    thread.start()
    has_locked.wait()
    found = turns.has_lapsed("default", [turns.Wish("default", 1, 60)])
    gate.touch()
    thread.join()
    assert not found
    assert turns.has_lapsed("default", [turns.Wish("default", 1, 60)])


@pytest.mark.only("postgresql", "mysql")
def test_a_deadlock_of_two_ends_with_both_done(workers: Workers, journal: Journal) -> None:
    for name in ("left", "right"):
        Group.objects.create(name=name)
    jobs = {int(atomic.lock_both.enqueue(journal.path, *names).id) for names in PAIRS}
    workers.start("--threads", 2)
    workers.wait_until(lambda: succeeded() == jobs, "both are done")
    assert Group.objects.filter(name__startswith="done").count() == 2
    assert sorted(sum((history(job_id) for job_id in jobs), [])) == ["failed"]
    assert len(journal.lines) == 3


PAIRS = [("left", "right"), ("right", "left")]


@pytest.mark.only("postgresql", "mysql")
def test_cancel_does_not_wait_for_a_run(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(atomic.hold.enqueue(journal.path, "held", str(gate)).id)
    workers.start()
    workers.wait_until(lambda: journal.lines == ["start held"], "it runs")
    assert queues.cancel(job_id) is False
    assert journal.lines == ["start held"]
    gate.touch()
    workers.wait_until(lambda: job_id in succeeded(), "it is done")
    assert Group.objects.count() == 1


@pytest.mark.only("sqlite")
def test_cancel_waits_for_the_file(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(atomic.hold.enqueue(journal.path, "held", str(gate)).id)
    workers.start()
    workers.wait_until(lambda: journal.lines == ["start held"], "it runs")
    answers: list[bool] = []

    def cancel() -> None:
        answers.append(queues.cancel(job_id))
        connections.close_all()

    thread = threading.Thread(target=cancel)
    thread.start()
    gate.touch()
    thread.join()
    assert answers == [False]
    assert succeeded() == {job_id}
    assert Group.objects.count() == 1


def test_a_waiting_one_can_be_cancelled() -> None:
    result = atomic.make_group.enqueue("never")
    assert queues.cancel(int(result.id))
    assert not live()


def test_a_stuck_run_ends_with_its_process(workers: Workers, journal: Journal) -> None:
    """Beside it a task ends whose outcome, on SQLite, cannot be written any more."""
    beside = int(tasks.nap.enqueue(f"{journal.path}.beside", "beside", 1).id)
    job_id = int(atomic.stuck.using(priority=-1).enqueue(journal.path).id)
    assert workers.start(*SHORT, "--threads", 2, "-v", 2).join(60) == 70
    assert Group.objects.count() == 0
    assert workers.start(*SHORT, "--batch").join(60) == 0
    assert Group.objects.count() == 1
    assert succeeded() == {job_id, beside}
    attempts = Run.objects.get(pk=job_id).attempts
    assert history(job_id) == ["lost", *["failed"] * (attempts - 2)]


def interrupted_twice(worker: Process) -> int:
    worker.send(signal.SIGTERM)
    worker.wait_for("stops; it waits for 1 tasks")
    worker.send(signal.SIGTERM)
    return worker.join()


@pytest.mark.only("postgresql", "mysql")
def test_the_end_of_the_process_undoes_the_run(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(atomic.hold.enqueue(journal.path, "held", str(gate)).id)
    worker = workers.start(*SHORT)
    workers.wait_until(lambda: journal.lines == ["start held"], "it runs")
    assert interrupted_twice(worker) == 1
    wait_until(lambda: live(id=job_id, attempts=1) == 1, worker)
    assert Group.objects.count() == 0
    gate.touch()
    assert workers.start(*SHORT, "--batch").join() == 0
    assert succeeded() == {job_id}
    assert Group.objects.count() == 1
