"""A server that restarts, crashes or is away for a while, under the load of four workers."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.app import tasks
from tests.failures.homes import Home
from tests.failures.load import BACK, TROUBLE, Load, reconnect
from tests.processes import Journal, Workers
from tests.queue_state import dead, live, succeeded


@pytest.mark.homes("postgresql")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
def test_postgresql_restarts(home: Home, load: Load, number: signal.Signals) -> None:
    with load.running():
        home.server.stop(number)
        home.server.start()
        load.goes_on()
    load.has_survived(outages=1)


@pytest.mark.homes("postgresql", "mysql")
def test_away_for_twenty_seconds(home: Home, load: Load) -> None:
    with load.running():
        home.server.stop(signal.SIGTERM if home.vendor == "mysql" else signal.SIGINT)
        time.sleep(20)  # it is the length of time that is in question
        home.server.start()
        load.goes_on()
    load.has_survived(outages=1)


@pytest.mark.homes("postgresql", "mysql")
def test_it_crashes(home: Home, load: Load) -> None:
    """Not even its processes say goodbye; what was committed is there when it comes back."""
    with load.running():
        home.server.crash()
        home.server.start()
        load.goes_on()
    load.has_survived(outages=1)


@pytest.mark.homes("postgresql", "mysql")
def test_sessions_are_killed_all_the_time(home: Home, load: Load) -> None:
    with load.running():
        for _ in range(5):
            home.end_sessions()
            time.sleep(0.5)
        load.goes_on()
    load.has_survived()


@pytest.mark.homes("postgresql", "mysql")
def test_restored_from_a_backup(home: Home, load: Load, workers: Workers) -> None:
    """Dropped, empty for a while, and back with the tables: the workers have waited for it."""
    with load.running():
        workers.wait_until(lambda: load.is_done, "everything is done")
        reconnect()
        home.drop()
        for worker in load.alkworkers:
            worker.wait_for(TROUBLE)
        home.create()
        time.sleep(6)  # longer than a worker waits between two tries
        home.migrate()
        for worker in load.alkworkers:
            worker.wait_for(BACK)
        load.jobs.clear()
        load.atomic.clear()
        load.goes_on()
    load.has_survived(outages=1, journal_is_older=True)


@pytest.mark.homes("postgresql", "mysql")
def test_restored_while_tasks_run(home: Home, workers: Workers, journal: Journal, gate: Path) -> None:
    """What a worker holds is not there any more: it says so, and goes on with what is."""
    worker = workers.ready("--threads", 2, "--visibility-timeout", 2)
    held = [int(tasks.hold.enqueue(journal.path, name, str(gate)).id) for name in ("one", "two")]
    workers.wait_until(lambda: len(journal.lines) == 2, "both run")
    reconnect()
    home.drop()
    worker.wait_for(TROUBLE)
    home.create()
    home.migrate()
    worker.wait_for(BACK)
    worker.wait_for("the claim of attempt 1 was lost", len(held))
    gate.touch()
    probe = int(tasks.write.enqueue(journal.path, "probe").id)
    workers.wait_until(lambda: probe in succeeded(), "another job is done")
    assert not live() and not dead() and succeeded() == {probe}
    assert worker.count("was lost") == len(held)
    assert worker.count("Traceback") == 0
    assert worker.stop() == 0
