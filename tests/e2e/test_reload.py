"""``alkworker --reload``: the worker follows changes of the code, and takes leave of its tasks properly."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from alkstore_django.envelopes import Envelope
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.processes import Journal, Process, Workers
from tests.queue_state import live

pytestmark = pytest.mark.django_db(transaction=True)

CODE = """
from alkstore_django.tasks import task
from tests.app.tasks import write_line


@task
def say(path):
    write_line(path, "{word}")
"""


@dataclass
class Project:
    """An app with one task, which a test rewrites."""

    workers: Workers
    directory: Path

    @property
    def module(self) -> Path:
        return self.directory / "fresh" / "tasks.py"

    def start(self, *arguments: object, debug: bool = False) -> Process:
        return self.workers.start(
            *arguments,
            DJANGO_SETTINGS_MODULE="tests.e2e.developing",
            PYTHONPATH=str(self.directory),
            PYTHONDONTWRITEBYTECODE="1",  # two versions within a second look alike to the cache
            TEST_DEBUG=str(int(debug)),
        )

    def ready(self, *arguments: object, debug: bool = False) -> Process:
        worker = self.start(*arguments, debug=debug)
        worker.wait_for(" serves ")
        return worker

    def change(self, text: str, worker: Process, pattern: str, times: int = 1) -> None:
        """Write the module, and save it again until the worker says something."""
        self.module.write_text(text)

        def is_seen() -> bool:
            self.module.touch()
            return worker.count(pattern) >= times

        self.workers.wait_until(is_seen, pattern)

    def say(self, journal: Journal) -> None:
        Queue("default").enqueue_text(Envelope("fresh.tasks.say", [journal.path], {}).seal())


@pytest.fixture
def project(workers: Workers, tmp_path: Path) -> Project:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / "__init__.py").touch()
    found = Project(workers, tmp_path)
    found.module.write_text(CODE.format(word="old"))
    return found


def serving(worker: Process) -> int:
    """The process of the last worker that began."""
    return int(re.findall(r"-(\d+)-[0-9a-f]{8} serves ", worker.output)[-1])


def test_a_change_is_followed(project: Project, workers: Workers, journal: Journal) -> None:
    worker = project.ready("--reload")
    project.say(journal)
    workers.wait_until(lambda: journal.lines == ["old"], "the old code runs")
    project.change(CODE.format(word="new"), worker, " serves ", 2)
    project.say(journal)
    workers.wait_until(lambda: journal.lines == ["old", "new"], "the new code runs")
    assert worker.stop() == 0
    assert worker.count(" ERROR ") == 0


def test_a_running_task_may_finish(project: Project, journal: Journal, gate: Path) -> None:
    tasks.hold.enqueue(journal.path, "held", str(gate))
    worker = project.ready("--reload", "--shutdown-timeout", 600)
    project.workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    project.change(CODE.format(word="new"), worker, "stops; it waits for 1 tasks")
    gate.touch()
    worker.wait_for(" serves ", 2)
    assert journal.lines == ["start held", "end held"]
    assert worker.stop() == 0
    assert not live()


def test_broken_code_is_waited_for(project: Project, journal: Journal) -> None:
    worker = project.ready("--reload")
    project.change("def say(:", worker, "ERROR The worker ended with 1; it waits for a change of its code")
    assert "SyntaxError" in worker.output
    project.change(CODE.format(word="fixed"), worker, " serves ", 2)
    project.say(journal)
    project.workers.wait_until(lambda: journal.lines == ["fixed"], "the new code runs")
    assert worker.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_it_waits(project: Project, number: signal.Signals) -> None:
    project.module.write_text("def say(:")
    worker = project.start("--reload")
    worker.wait_for("it waits for a change of its code")
    assert worker.stop(number) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_it_starts(project: Project, number: signal.Signals) -> None:
    """The signal ends the worker, which has not begun: nothing was cut off."""
    project.module.write_text("import time\nprint('starts', flush=True)\ntime.sleep(600)")
    worker = project.start("--reload")
    worker.wait_for("starts")
    assert worker.stop(number) == 0


def test_two_signals_interrupt(project: Project, journal: Journal) -> None:
    job_id = int(tasks.hold.enqueue(journal.path, "held", "/nowhere").id)
    worker = project.ready("--reload")
    project.workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    worker.send(signal.SIGTERM)
    worker.wait_for("stops; it waits for 1 tasks")
    worker.send(signal.SIGTERM)
    assert worker.join() == 1
    assert live(id=job_id, state="pending", attempts=1) == 1


def test_the_worker_ends_when_nobody_waits_for_it(project: Project, journal: Journal, gate: Path) -> None:
    tasks.hold.enqueue(journal.path, "held", str(gate))
    worker = project.ready("--reload")
    project.workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    worker.send(signal.SIGKILL)
    worker.wait_for("stops; it waits for 1 tasks")
    gate.touch()
    worker.wait_for(r"Worker \S+ ends after 1 tasks")
    assert not live()


@pytest.mark.parametrize(
    ("arguments", "debug", "reloads"),
    [
        ((), True, True),
        ((), False, False),
        (("--no-reload",), True, False),
        (("--reload",), False, True),
        (("--batch",), True, False),
    ],
)
def test_when_it_reloads(
    project: Project, gate: Path, journal: Journal, arguments: tuple[str, ...], debug: bool, reloads: bool
) -> None:
    """Then the process that works is another one than the one that was started."""
    tasks.hold.enqueue(journal.path, "held", str(gate))
    worker = project.ready(*arguments, debug=debug)
    assert (serving(worker) != worker.pid) is reloads
    gate.touch()
    assert worker.stop() == 0


def test_processes_do_not_reload(project: Project) -> None:
    supervisor = project.ready("--processes", 1, debug=True)
    assert supervisor.count(f"Worker 1 is process {serving(supervisor)}") == 1
    assert supervisor.stop() == 0


def test_the_variables_are_not_passed_on(project: Project, journal: Journal) -> None:
    """What a task starts is no worker of ours."""
    project.module.write_text(CODE.replace('"{word}"', "sorted(set(__import__('os').environ))"))
    for arguments in (["--reload"], ["--processes", 1]):
        worker = project.ready(*arguments)
        project.say(journal)
        project.workers.wait_until(lambda: not live(), "the task has run")
        assert worker.stop() == 0
    assert len(journal.lines) == 2
    assert "ALKWORKER" not in "".join(journal.lines)
    assert "ALKSTORE_TEST_DIR" in journal.lines[0]
