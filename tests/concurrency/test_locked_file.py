"""SQLite has one lock for all writers, and somebody holds it for most of the time."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from tests.processes import Journal, Workers
from tests.queue_state import dead, live, lost

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("sqlite")]


def test_nothing_is_lost_while_the_file_is_locked(workers: Workers, journal: Journal, gate: Path) -> None:
    """Three seconds in five, with four workers that wait half a second, and two processes that enqueue."""
    alkworkers = [workers.ready(DJANGO_SETTINGS_MODULE="tests.concurrency.impatient") for _ in range(4)]
    enqueuers = [
        workers.run("-m", "tests.concurrency.enqueuer", name, journal.path, gate) for name in ("one", "two")
    ]
    workers.wait_until(lambda: len(journal.lines) > 20, "all is busy")
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        for pause in (2, 0):
            other.execute("BEGIN IMMEDIATE")
            time.sleep(3)  # it is the length of time that is in question
            other.execute("ROLLBACK")
            time.sleep(pause)
    gate.touch()
    assert [enqueuer.join() for enqueuer in enqueuers] == [0, 0]
    expected = [
        f"{name}-{number}"
        for name, enqueuer in zip(("one", "two"), enqueuers, strict=True)
        for number in range(int(enqueuer.lines[-1]))
    ]
    workers.wait_until(lambda: not live(), "the queue is empty")
    assert [worker.stop() for worker in alkworkers] == [0] * 4

    assert sorted(journal.keys) == sorted(expected)
    assert not dead() and not lost()
    assert len(expected) > 100
    for process in workers.processes:
        assert process.count("Traceback|OperationalError") == 0
    assert any(worker.count("WARNING The database is in trouble") for worker in alkworkers), (
        "nothing was shown"
    )
