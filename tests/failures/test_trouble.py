"""A database that is there and does not do what it is asked: locked, full, read-only, frozen."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from alkstore_django.models import Run
from alkstore_django.runtime.hygiene import FRESH
from tests.app import tasks
from tests.failures import homes
from tests.failures.homes import Home
from tests.failures.load import BACK, TROUBLE, Load
from tests.processes import Journal, Workers, comes_true
from tests.queue_state import live, succeeded


@pytest.mark.homes("sqlite")
def test_locked_by_another_process_for_thirty_seconds(home: Home, load: Load) -> None:
    with load.running():
        with closing(sqlite3.connect(home.path, isolation_level=None, timeout=60)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(30)  # it is the length of time that is in question
            for worker in load.alkworkers:
                worker.wait_for(TROUBLE)
                assert worker.count(TROUBLE) == 1, worker
            other.execute("ROLLBACK")
        load.goes_on()
    load.has_survived()  # four that want a file with one writer may have to wait once more


@pytest.mark.homes("postgresql", "mysql")
def test_read_only_for_a_while(home: Home, load: Load) -> None:
    """As after a failover, to a server that is not promoted yet."""
    with load.running():
        home.make_read_only(True)
        try:
            for worker in load.alkworkers:
                worker.wait_for(TROUBLE)
        finally:
            home.make_read_only(False)
        load.goes_on()
    load.has_survived(outages=1)


@pytest.mark.homes("postgresql", "mysql")
def test_frozen_for_a_while(home: Home, load: Load) -> None:
    """It takes what it is sent and does not answer, for longer than a claim holds."""
    with load.running("--visibility-timeout", 2):
        home.server.freeze()
        time.sleep(5)  # it is the length of time that is in question
        home.server.thaw()
        load.goes_on()
    load.has_survived()


@pytest.mark.homes("postgresql", "mysql")
@pytest.mark.parametrize("age", [0, None], ids=["closed after each task", "kept"])
def test_idle_sessions_are_cut(
    home: Home, workers: Workers, journal: Journal, gate: Path, age: int | None
) -> None:
    """By the server or something before it: what a long task has done is settled all the same."""
    home.cut_idle_sessions(1)
    try:
        worker = workers.ready("--threads", 1, "--interval", 4, **home.reached(CONN_MAX_AGE=age))
        first = int(tasks.write_group.enqueue(journal.path, "first").id)
        held = int(tasks.hold.enqueue(journal.path, "held", str(gate)).id)
        workers.wait_until(lambda: "start held" in journal.lines, "a task runs")
        worker.freeze()  # what asks every second is idle for long enough by luck only
        cut = home.session_ids()
        if home.vendor == "postgresql":  # which does not always count from the end of a pipeline
            workers.wait_until(lambda: cut - home.session_ids(), "sessions of the worker are cut")
            home.end_sessions()
        workers.wait_until(lambda: not home.session_ids(), "all sessions of the worker are cut")
        worker.send(signal.SIGCONT)
        gate.touch()
        last = int(tasks.write_group.enqueue(journal.path, "last").id)
        workers.wait_until(lambda: not live(), "everything is done")
    finally:
        home.cut_idle_sessions(None)
    assert succeeded() == {first, held, last}
    assert set(Run.objects.values_list("attempts", flat=True)) == {1}
    assert journal.lines == ["first", "start held", "end held", "last"]
    assert worker.count("Traceback") == 0
    assert worker.stop() == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of sixteen megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.homes("sqlite")
def test_the_disk_is_full(
    home: Home, workers: Workers, journal: Journal, small_disk: Path, migrated: Path
) -> None:
    """Nothing can be written until somebody makes room; then everything is done, and nothing twice."""
    (small_disk / "home.sqlite3").write_bytes(migrated.read_bytes())
    full = homes.sqlite(small_disk / "home.sqlite3")
    with full.opened():
        alkworkers = [workers.ready(**full.environment) for _ in range(2)]
        with transaction.atomic():
            jobs = {int(tasks.write.enqueue(journal.path, f"job-{n}", 0.1).id) for n in range(300)}
        workers.wait_until(lambda: len(journal.lines) >= 20, "all is busy")
        filler = small_disk / "filler"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(os.urandom(65536))
        assert comes_true(lambda: any(each.count(TROUBLE) for each in alkworkers), 30)
        filler.unlink()
        workers.wait_until(lambda: not live(), "everything is done")
        for worker in alkworkers:
            worker.wait_for(BACK, worker.count(TROUBLE))
            assert worker.count("Traceback") == 0, worker
            assert worker.stop() == 0
        assert succeeded() == jobs
        assert sorted(journal.keys) == sorted(f"job-{n}" for n in range(300))


@pytest.mark.homes("sqlite")
@pytest.mark.parametrize("age", [0, None], ids=["closed after each task", "kept"])
def test_the_file_is_replaced(
    home: Home, workers: Workers, journal: Journal, migrated: Path, age: int | None
) -> None:
    """As by a backup that is moved into its place: the worker goes on with what is there now."""
    worker = workers.ready(**home.reached(CONN_MAX_AGE=age))
    first = int(tasks.write_group.enqueue(journal.path, "first").id)
    workers.wait_until(lambda: first in succeeded(), "a job is done")
    connection.close()
    copy = home.path.with_name("copy")
    copy.write_bytes(migrated.read_bytes())
    for ending in ("-wal", "-shm"):
        home.path.with_name(f"{home.path.name}{ending}").unlink(missing_ok=True)
    time.sleep(FRESH)  # for that long a thread trusts the connections of its last task
    copy.replace(home.path)
    later = {int(tasks.write_group.enqueue(journal.path, f"later-{n}").id) for n in range(8)}
    workers.wait_until(lambda: succeeded() == later, "the jobs in the new file are done")
    assert set(Group.objects.values_list("name", flat=True)) == {f"later-{n}" for n in range(8)}
    worker.wait_for(BACK)
    assert worker.count(TROUBLE) == 1 and worker.count("was replaced by another") == 1
    assert worker.count("Traceback") == 0
    assert worker.stop() == 0
