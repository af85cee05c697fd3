"""A worker gets each signal at each moment of a job's life: nothing is lost, nothing stuck, fences hold.

Two repetitions of each cell; ``--full`` makes it twenty and prints the table.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from alkstore_django.models import Run
from tests.app import tasks
from tests.failures.homes import Home
from tests.failures.moments import BEFORE_ACK, BEFORE_CLAIM, BEFORE_TASK, IN_ACK, IN_CLAIM, IN_TASK, MOMENTS
from tests.failures.pauses import Pause
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, history, live, succeeded

KILL, STOP = signal.SIGKILL, signal.SIGSTOP
SIGNALS = (KILL, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, STOP)

LEASE = 1
"""Seconds; a claim holds for up to one more."""


@dataclass
class Cell:
    """What a repetition has seen."""

    starts: int
    ends: int
    attempts: int
    history: list[str]
    worker_id: str


STARTS = {
    KILL: {
        BEFORE_CLAIM: {1},
        IN_CLAIM: {1},
        BEFORE_TASK: {1},
        IN_TASK: {2},
        BEFORE_ACK: {2},
        IN_ACK: {1},
    },
    STOP: {
        BEFORE_CLAIM: {1},
        IN_CLAIM: {1},
        BEFORE_TASK: {2},
        IN_TASK: {2},
        BEFORE_ACK: {1, 2},
        IN_ACK: {1},
    },
}
"""How often the task begins. After the signals that ask for a stop: once, always."""


class Scene:
    """One worker that something happens to, and the heir to its jobs."""

    def __init__(self, home: Home, workers: Workers, folder: Path, moment: str) -> None:
        folder.mkdir()
        self.vendor = home.vendor
        self.workers = workers
        self.moment = moment
        self.journal = Journal(folder / "journal")
        self.gate = folder / "gate"
        self.pause = Pause(home, moment, folder / "pause")
        self.job_id = 0

    def play(self, number: signal.Signals) -> Cell:
        if self.moment != IN_TASK:
            self.gate.touch()
        self.job_id = int(tasks.hold.enqueue(self.journal.path, "job", str(self.gate)).id)
        lease = LEASE if number in (KILL, STOP) else 10
        with self.pause:
            victim = self.pause.victim(self.workers, "--threads", 1, "--visibility-timeout", lease)
            self.workers.wait_until(lambda: self.is_reached or not victim.is_running, self.moment)
            assert victim.is_running, victim
            if number == STOP and self.moment in (BEFORE_TASK, IN_TASK):
                victim.freeze()
            else:
                victim.send(number)
            if number == KILL:
                victim.join()
                self.pause.forget()
            self.gate.touch()
            heir = self.workers.start("--visibility-timeout", 10, "--interval", 0.05)
            if number == STOP:
                self.heir_has_had_its_chance(heir)
                victim.send(signal.SIGCONT)
            self.pause.end()
            if number not in (KILL, STOP):
                assert victim.join() == 0, victim
            self.workers.wait_until(lambda: not live(), "the job is done")
            if number == STOP:
                self.is_well(victim)
            heir.wait_for(" serves ")
            assert heir.stop() == 0
        for process in (victim, heir):
            assert process.count("Traceback") == 0, process
        return self.seen()

    @property
    def is_reached(self) -> bool:
        return self.journal.lines == ["start job"] if self.moment == IN_TASK else self.pause.reached

    def heir_has_had_its_chance(self, heir: Process) -> None:
        """It has the job: also if the frozen worker has locked it in a transaction that it cannot end, which
        a server ends instead, after ten seconds. An SQLite file stays locked."""
        if self.vendor == "sqlite" and self.moment in (BEFORE_CLAIM, BEFORE_ACK):
            heir.wait_for(" serves |in trouble")
            time.sleep(LEASE + 1.5)  # it is the length of time that is in question
        else:
            self.workers.wait_until(lambda: not live(), "the heir has done the job")

    def is_well(self, victim: Process) -> None:
        """It goes on as if nothing had been; what it does about a job that it lost does not count."""
        if self.moment == IN_TASK:
            victim.wait_for("the claim of attempt 1 was lost")
        assert victim.stop() == 0

    def seen(self) -> Cell:
        run = Run.objects.get()
        assert succeeded() == {self.job_id} and not dead()
        lines = self.journal.lines
        return Cell(
            lines.count("start job"),
            lines.count("end job"),
            run.attempts,
            history(self.job_id),
            run.worker_id,
        )


def check(cell: Cell, number: signal.Signals, moment: str) -> None:
    """The task began as often as it may, and no attempt is unaccounted for."""
    assert cell.starts in STARTS.get(number, {}).get(moment, {1}), cell
    assert cell.history == ["lost"] * (cell.attempts - 1), cell
    if number == KILL:
        assert cell.ends == (2 if moment == BEFORE_ACK else 1), cell
        assert cell.attempts == (1 if moment in (BEFORE_CLAIM, IN_ACK) else 2), cell
    elif number == STOP:
        assert cell.ends == cell.starts <= cell.attempts, cell
    else:
        assert (cell.ends, cell.attempts) == (1, 1), cell


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "repetition" in metafunc.fixturenames:
        metafunc.parametrize("repetition", range(20 if metafunc.config.getoption("--full") else 2))


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name.removeprefix("SIG"))
@pytest.mark.parametrize("moment", MOMENTS)
def test_cell(
    home: Home,
    workers: Workers,
    tmp_path: Path,
    moment: str,
    number: signal.Signals,
    repetition: int,
    record_property: Callable[[str, object], None],
) -> None:
    cell = Scene(home, workers, tmp_path / str(repetition), moment).play(number)
    check(cell, number, moment)
    record_property("cell", [home.vendor, number.name.removeprefix("SIG"), moment, cell.starts])
