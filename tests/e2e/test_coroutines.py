"""Coroutine tasks: many at a time in one event loop, beside the threads, each on its own."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from alkstore_django.models import Job
from alkstore_django.runtime import exits
from tests.app import coroutines, tasks
from tests.e2e.test_hygiene import sessions
from tests.e2e.test_outcomes import outcome
from tests.e2e.test_stop import STOPS, interrupted
from tests.processes import Journal, Workers
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def lines(journal: Journal, word: str) -> list[str]:
    return sorted(line for line in journal.lines if line.startswith(word))


@pytest.mark.parametrize("task", [coroutines.hold, coroutines.hold_in_a_query])
def test_they_run_side_by_side(workers: Workers, journal: Journal, gate: Path, task: object) -> None:
    """Also in sync code and queries: no task waits for the thread of another."""
    ids = {int(task.enqueue(journal.path, str(n), str(gate)).id) for n in range(8)}  # type: ignore[attr-defined]
    worker = workers.start("--threads", 1)
    workers.wait_until(lambda: len(lines(journal, "start")) == 8, "all run")
    counting = int(coroutines.count_groups.enqueue(journal.path, "counted").id)
    adding = int(tasks.add.enqueue(1, 2).id)
    workers.wait_until(lambda: {counting, adding} <= succeeded(), "others are done meanwhile")
    assert not lines(journal, "end")
    gate.touch()
    assert worker.stop() == 0
    assert ids <= succeeded()


def test_they_are_bounded(workers: Workers, journal: Journal, gate: Path) -> None:
    """What there is no room for is left to other workers."""
    task = coroutines.hold_in_a_queue_of_coroutines
    for n in range(5):
        task.enqueue(journal.path, str(n), str(gate))
    flags = ("--queue", "coroutines", "--async-concurrency", 2)
    first = workers.start(*flags)
    workers.wait_until(lambda: len(lines(journal, "start")) == 2, "two run")
    workers.wait_until(lambda: live(state="pending", attempts=0) == 3, "the others were put back, or left")
    second = workers.start(*flags)
    workers.wait_until(lambda: len(lines(journal, "start")) == 4, "two more run")
    gate.touch()
    workers.wait_until(lambda: len(lines(journal, "end")) == 5, "all have run")
    assert [first.stop(), second.stop()] == [0, 0]
    assert lines(journal, "start") == [f"start {n}" for n in range(5)]


def test_many_coroutines_do_not_keep_threads_idle(workers: Workers, journal: Journal, gate: Path) -> None:
    """In one queue, and before the others in it."""
    with transaction.atomic():
        for n in range(6):
            coroutines.hold.enqueue(journal.path, str(n), str(gate))
        later = {int(tasks.add.enqueue(1, n).id) for n in range(20)}
    worker = workers.start("--async-concurrency", 3)
    workers.wait_until(lambda: later <= succeeded(), "the threads have done all there is for them")
    workers.wait_until(lambda: len(lines(journal, "start")) >= 3, "the coroutines have begun")
    assert len(lines(journal, "start")) == 3
    gate.touch()
    assert worker.stop() == 0
    assert not lines(journal, "cancelled")


def test_busy_threads_do_not_keep_coroutines_waiting(workers: Workers, journal: Journal, gate: Path) -> None:
    with transaction.atomic():
        for n in range(5):
            tasks.hold.enqueue(journal.path, str(n), str(gate))
        later = {int(tasks.async_add.enqueue(1, n).id) for n in range(20)}
    worker = workers.start("--threads", 2)
    workers.wait_until(lambda: later <= succeeded(), "the coroutines are done")
    workers.wait_until(lambda: len(lines(journal, "start")) >= 2, "the threads have begun")
    assert len(lines(journal, "start")) == 2
    gate.touch()
    assert worker.stop() == 0


def test_a_blocked_loop_keeps_its_claims(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(coroutines.block.enqueue(journal.path, "blocking", str(gate)).id)
    worker = workers.start("--visibility-timeout", 3)
    workers.wait_until(lambda: journal.lines == ["start blocking"], "it blocks")
    claimed_until = Job.objects.get(pk=job_id).claim_expires_at
    assert claimed_until is not None
    workers.wait_until(
        lambda: live(id=job_id, claim_expires_at__gt=claimed_until + 3), "the claim is renewed"
    )
    adding = int(tasks.add.enqueue(1, 2).id)
    workers.wait_until(lambda: adding in succeeded(), "the threads go on")
    gate.touch()
    workers.wait_until(lambda: job_id in succeeded(), "it is done")
    assert worker.stop() == 0
    assert not history(job_id)


def test_a_transaction_that_was_left_open_is_rolled_back(workers: Workers) -> None:
    """In the thread of a coroutine, as in any other."""
    job_id = int(coroutines.leave_a_transaction.enqueue("left behind").id)
    worker = workers.start("--batch")
    assert worker.join() == 0
    assert succeeded() == {job_id}
    assert not Group.objects.exists()
    assert worker.count("WARNING A task left a transaction open on 'default': rolled back.") == 1


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("settings", ["tests.settings", "tests.e2e.persistent"])
def test_no_session_is_left(workers: Workers, journal: Journal, settings: str) -> None:
    """Three are the clerk's, the scheduler's and the test's; each thread of a coroutine had its own."""
    results = [coroutines.use_every_thread.enqueue(journal.path, str(n)) for n in range(30)]
    worker = workers.start(DJANGO_SETTINGS_MODULE=settings)
    workers.wait_until(lambda: not live(), "all is done")
    workers.wait_until(lambda: sessions() == 3, "all sessions have ended")
    assert worker.stop() == 0
    results[0].refresh()
    assert results[0].return_value >= 2
    assert len(succeeded()) == 30


@pytest.mark.parametrize(
    ("task", "left", "ended"),
    [
        (coroutines.leave_a_task, "an asyncio task .*: _sleep_for_ever", "ended what was left"),
        (coroutines.leave_a_generator, "an async generator .*: _numbers", "closed the generator"),
    ],
)
def test_what_is_left_behind_is_ended(
    workers: Workers, journal: Journal, task: object, left: str, ended: str
) -> None:
    job_id = int(task.enqueue(journal.path).id)  # type: ignore[attr-defined]
    worker = workers.start("--batch")
    assert worker.join() == 0
    assert succeeded() == {job_id}
    assert journal.lines == [ended]
    assert worker.count(f"WARNING Job id={job_id} .*left {left}") == 1


@pytest.mark.parametrize(
    ("task", "warnings"),
    [
        (coroutines.fail_in_a_generator, 0),
        (coroutines.break_off_a_generator, 0),
        (coroutines.leave_a_task_with_a_generator, 1),
    ],
)
def test_generators_are_closed(workers: Workers, journal: Journal, task: object, warnings: int) -> None:
    """Without a word about those that only an exception, or nothing, refers to."""
    task.enqueue(journal.path)  # type: ignore[attr-defined]
    worker = workers.start("--batch")
    assert worker.join() == 0
    assert journal.lines == ["closed the generator"]
    assert worker.count("it left") == warnings


@pytest.mark.parametrize("task", [coroutines.leave_a_thread_busy, coroutines.leave_the_stubborn])
def test_what_cannot_be_ended_does_not_hold_up_the_process(
    workers: Workers, journal: Journal, task: object
) -> None:
    """The job is done; the process, when it ends, ends in the middle of what is left, and says so."""
    job_id = int(task.enqueue(journal.path).id)  # type: ignore[attr-defined]
    worker = workers.start("--batch")
    assert worker.join() == exits.FAILED
    assert succeeded() == {job_id}


def test_the_loop_begins_with_the_first_of_them() -> None:
    """And ends with the worker."""
    for task, expected in ((tasks.list_threads, False), (coroutines.list_threads, True)):
        result = outcome(task)
        assert ("alkworker-loop" in result.return_value) is expected
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("alkworker")]


def test_a_blocked_loop_does_not_hold_up_a_stop(workers: Workers, journal: Journal) -> None:
    job_id = int(coroutines.block.enqueue(journal.path, "blocking", "/nowhere").id)
    worker = workers.start("--shutdown-timeout", 0)
    workers.wait_until(lambda: journal.lines == ["start blocking"], "it blocks")
    worker.send(signal.SIGTERM)
    interrupted(worker, job_id, 1)


def test_exits_end_neither_loop_nor_worker(workers: Workers, journal: Journal) -> None:
    leaving = int(coroutines.leave.enqueue(3).id)
    surviving = int(coroutines.exit_in_another.enqueue(journal.path).id)
    worker = workers.start("--batch")
    assert worker.join() == 0
    assert set(dead()) == {leaving}
    assert succeeded() == {surviving}
    assert journal.lines == ["survived"]


def test_keyboard_interrupt_stops_the_worker(workers: Workers, journal: Journal) -> None:
    job_id = int(coroutines.interrupt.enqueue(journal.path).id)
    interrupted(workers.start(), job_id, 1)
    assert journal.lines == ["run"]


def test_a_stop_waits_for_them(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(coroutines.hold.enqueue(journal.path, "held", str(gate)).id)
    worker = workers.start()
    workers.wait_until(lambda: journal.lines == ["start held"], "it runs")
    worker.send(signal.SIGTERM)
    worker.wait_for(STOPS)
    gate.touch()
    assert worker.join() == 0
    assert succeeded() == {job_id}


@pytest.mark.parametrize(("max_attempts", "spent"), [(3, 1), (1, 0)])
def test_at_the_end_of_the_grace_they_are_cancelled(
    workers: Workers, journal: Journal, max_attempts: int, spent: int
) -> None:
    """And put back like any interrupted task; their own code can tidy up."""
    task = coroutines.hold.using(max_attempts=max_attempts)
    job_id = int(task.enqueue(journal.path, "held", "/nowhere").id)
    worker = workers.start("--shutdown-timeout", 1)
    workers.wait_until(lambda: journal.lines == ["start held"], "it runs")
    worker.send(signal.SIGTERM)
    interrupted(worker, job_id, spent)
    assert journal.lines == ["start held", "cancelled held"]


def test_they_use_the_database(workers: Workers) -> None:
    job_id = int(tasks.async_group.enqueue("made by a coroutine").id)
    assert workers.start("--batch").join() == 0
    assert succeeded() == {job_id}
    assert Group.objects.get().name == "made by a coroutine"
