"""The registry and the health file, written by real workers: at work, idle, killed, and in trouble."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from alkstore_django import __version__
from alkstore_django.models import WorkerProcess
from alkstore_django.workers import FORGET, WorkerInfo
from alkstore_django.workers import workers as registered
from tests.app import tasks
from tests.factories import at
from tests.processes import Journal, Process, Workers
from tests.queue_state import live

pytestmark = pytest.mark.django_db(transaction=True)


def entry(process: Process) -> WorkerInfo | None:
    return next((worker for worker in registered() if worker.pid == process.pid), None)


def test_from_start_to_end(workers: Workers, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    arguments = ("--queue", "mail,bulk-*", "--exclude-queue", "bulk-x", "--worker-id", "me")
    worker = workers.ready(*arguments, "--health-file", file)
    (found,) = registered()
    assert (found.worker_id, found.pid, found.version) == ("me", worker.pid, __version__)
    assert found.serves("mail")
    assert found.serves("bulk-a")
    assert not found.serves("bulk-x")
    facts = json.loads(file.read_text())
    assert facts == {"worker_id": "me", "pid": worker.pid, "running": 0, "beat_at": facts["beat_at"]}
    assert os.listdir(tmp_path) == ["health.json"]
    assert worker.stop() == 0
    assert registered() == []
    assert not file.exists()


def test_the_default_queues(workers: Workers) -> None:
    worker = workers.ready()
    found = entry(worker)
    assert found is not None
    assert "default" in found.queues


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_row_stays_of_a_worker_that_had_to_interrupt(
    workers: Workers, journal: Journal, gate: Path, number: signal.Signals
) -> None:
    tasks.hold.enqueue(journal.path, "held", str(gate))
    worker = workers.ready("--shutdown-timeout", 0)
    workers.wait_until(lambda: journal.lines, "it runs")
    assert worker.stop(number) == 1
    assert registered() == []


def test_batch_leaves_no_row(workers: Workers) -> None:
    assert workers.start("--batch").join() == 0
    assert registered() == []


def test_a_killed_worker_leaves_a_row_until_others_forget_it(workers: Workers, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    killed, other = workers.ready("--health-file", file), workers.ready()
    assert killed.stop(signal.SIGKILL) == -9
    assert file.exists()
    assert {worker.pid for worker in registered()} == {killed.pid, other.pid}
    workers.ready()
    assert killed.pid in {worker.pid for worker in registered()}
    WorkerProcess.objects.filter(pid=killed.pid).update(heartbeat_at=at(-FORGET - 1))
    last = workers.ready()
    assert killed.pid not in {worker.pid for worker in registered()}
    assert {other.pid, last.pid} < {worker.pid for worker in registered()}


def test_heartbeats(workers: Workers, journal: Journal, gate: Path, tmp_path: Path) -> None:
    """Of an idle worker, of one whose threads are all busy, and of one whose row was deleted."""
    for number in range(2):
        tasks.hold.enqueue(journal.path, f"held-{number}", str(gate))
    busy = workers.ready("--threads", 2, "--health-file", tmp_path / "busy")
    workers.wait_until(lambda: len(journal.lines) == 2, "both tasks run")
    idle = workers.ready("--queue", "nobody's", "--health-file", tmp_path / "idle")
    lost = workers.ready("--queue", "nobody's either")
    WorkerProcess.objects.update(heartbeat_at=at(-50), started_at=at(-100))
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in ("busy", "idle")}
    WorkerProcess.objects.filter(pid=lost.pid).delete()

    def all_beat() -> bool:
        return {worker.pid for worker in registered() if worker.silent_for < 40} == {
            busy.pid,
            idle.pid,
            lost.pid,
        }

    workers.wait_until(all_beat, "they beat")
    running = {worker.pid: worker.running for worker in registered()}
    assert running == {busy.pid: 2, idle.pid: 0, lost.pid: 0}
    for name, time in before.items():
        workers.wait_until(lambda name=name, time=time: (tmp_path / name).stat().st_mtime_ns > time, name)
    found = entry(idle)
    assert found is not None
    assert found.heartbeat_at - found.started_at > 40, "the start is still the old one"
    gate.touch()
    workers.wait_until(lambda: not live(), "the tasks are done")
    assert [worker.stop() for worker in (busy, idle, lost)] == [0, 0, 0]
    assert registered() == []


@contextmanager
def away(table: str) -> Iterator[None]:
    """A table has another name for a while."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE {table}_away RENAME TO {table}")


def test_work_goes_on_without_registry_and_file(workers: Workers, journal: Journal, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    worker = workers.ready("--no-maintenance")  # which would look for old rows there, ten seconds from now
    other = workers.ready("--no-maintenance", "--queue", "other", "--health-file", folder / "file")
    with away("alkstore_workers"):
        worker.wait_for("WARNING The registry of workers cannot be written, the work goes on")
        tasks.write.enqueue(journal.path, "job")
        workers.wait_until(lambda: not live(), "a job is done")
    (folder / "file").unlink()
    folder.rmdir()
    workers.wait_until(lambda: (found := entry(worker)) and found.silent_for < 5, "it beats again")
    other.wait_for("WARNING The health file cannot be written, the work goes on")
    tasks.write.using(queue_name="other").enqueue(journal.path, "other")
    workers.wait_until(lambda: not live(), "its job is done")
    assert [worker.stop(), other.stop()] == [0, 0]
    assert [worker.count("WARNING"), worker.count("Traceback"), other.count("Traceback")] == [1, 0, 0]
    assert journal.keys == ["job", "other"]
    assert registered() == []


def test_a_folder_that_is_not_there(workers: Workers, tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "file", tmp_path):
        worker = workers.start("--health-file", path)
        assert worker.join() in (1, 2)
        assert (
            worker.count("argument --health-file: .* is not a file in a folder that can be written to") == 1
        )


def test_the_file_of_another_worker_is_left(workers: Workers, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    first = workers.ready("--health-file", file)
    second = workers.ready("--health-file", file)
    assert first.stop() == 0
    assert json.loads(file.read_text())["pid"] == second.pid
    assert second.stop() == 0
    assert not file.exists()
