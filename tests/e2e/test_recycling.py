"""A worker at one of its limits: what runs is finished, nothing else is begun, and it ends with 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app import tasks
from tests.processes import Journal, Process, Workers
from tests.queue_state import live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

ROOM = r"INFO Worker \S+ makes room for another: "


def recycled(worker: Process, gate: Path, running: int, reason: str) -> None:
    """It says why it ends, finishes the task that waits for the gate, and leaves a later job alone."""
    worker.wait_for(ROOM + reason)
    later = int(tasks.nothing.enqueue().id)
    gate.touch()
    assert worker.join() == 0
    assert succeeded() == {running}
    assert live(id=later, state="pending", attempts=0) == live() == 1
    assert worker.count(ROOM) == 1
    assert worker.count("ends after 1 tasks") == 1


def test_max_seconds(workers: Workers, journal: Journal, gate: Path) -> None:
    running = int(tasks.hold.enqueue(journal.path, "held", str(gate)).id)
    worker = workers.start("--max-seconds", 4, "--threads", 2)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    recycled(worker, gate, running, "it has run for 4 s")


def test_max_rss(workers: Workers, journal: Journal, gate: Path) -> None:
    running = int(tasks.hoard.enqueue(journal.path, "held", 400, str(gate)).id)
    worker = workers.start("--max-rss", "350M", "--threads", 2)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task has its memory")
    gate.touch()
    assert worker.join() == 0
    assert worker.count(ROOM + r"it occupies \d\d\d MB") == 1
    assert succeeded() == {running}


def test_max_rss_below_what_a_process_needs(workers: Workers) -> None:
    """Every process does something before it ends, or nothing would ever be done."""
    for _ in range(3):
        tasks.nothing.enqueue()
    left = live()
    while left:
        assert workers.start("--max-rss", "1", "--threads", 1).join() == 0
        assert live() < left
        left = live()


def test_max_idle_ends_an_idle_worker(workers: Workers) -> None:
    done = int(tasks.nothing.enqueue().id)
    worker = workers.start("--max-idle", 1)
    assert worker.join() == 0
    assert worker.count(ROOM + "it had nothing to do for 1 s") == 1
    assert succeeded() == {done}


def test_max_idle_leaves_a_busy_worker_alone(workers: Workers, journal: Journal, gate: Path) -> None:
    first = int(tasks.hold.enqueue(journal.path, "held", str(gate)).id)
    worker = workers.start("--max-idle", 0, "--threads", 1)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    second = int(tasks.nothing.enqueue().id)
    gate.touch()
    assert worker.join() == 0
    assert succeeded() == {first, second}


def test_a_stop_interrupts_what_recycling_waits_for(workers: Workers, journal: Journal) -> None:
    job_id = int(tasks.hold.enqueue(journal.path, "held", "/nowhere").id)
    worker = workers.start("--max-seconds", 3, "--shutdown-timeout", 0)
    worker.wait_for(ROOM)
    assert worker.stop() == 1
    assert live(id=job_id, state="pending", attempts=1) == live() == 1
