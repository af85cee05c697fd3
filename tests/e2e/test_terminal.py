"""Workers in a terminal: a Ctrl-C goes to every process there, and so does the end of the terminal."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.app import tasks
from tests.processes import Journal, Process, Workers, descendants, is_alive
from tests.queue_state import live

pytestmark = pytest.mark.django_db(transaction=True)

STOPS = "stops; it waits for 1 tasks"

ways = pytest.mark.parametrize("arguments", [[], ["--processes", 1], ["--reload"]], ids=str)


def busy(workers: Workers, journal: Journal, gate: object, arguments: list[object]) -> Process:
    """A worker in a terminal, which runs one task until the gate is there."""
    tasks.hold.enqueue(journal.path, "held", str(gate))
    worker = workers.run("-m", "tests.terminal", "-m", "django", "alkworker", "--skip-checks", *arguments)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    return worker


@ways
def test_ctrl_c(workers: Workers, journal: Journal, gate: Path, arguments: list[object]) -> None:
    worker = busy(workers, journal, gate, arguments)
    worker.send(signal.SIGUSR1)
    worker.wait_for(STOPS)
    gate.touch()
    assert worker.join() == 0
    assert not live()


@ways
def test_ctrl_c_twice(workers: Workers, journal: Journal, arguments: list[object]) -> None:
    worker = busy(workers, journal, "/nowhere", [*arguments, "--shutdown-timeout", 600])
    worker.send(signal.SIGUSR1)
    worker.wait_for(STOPS)
    worker.send(signal.SIGUSR1)
    assert worker.join() == 1
    assert live(state="pending", attempts=1) == live() == 1


@ways
def test_the_end_of_the_terminal(
    workers: Workers, journal: Journal, gate: Path, arguments: list[object]
) -> None:
    """They stop gracefully, and none of them stays behind."""
    worker = busy(workers, journal, gate, arguments)
    pids = descendants(worker.pid)
    assert len(pids) == (2 if arguments else 1)
    worker.send(signal.SIGUSR2)
    gate.touch()
    worker.join()
    workers.wait_until(lambda: not any(map(is_alive, pids)), "all have ended")
    assert journal.lines == ["start held", "end held"]
    assert not live()
