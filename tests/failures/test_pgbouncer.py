"""Behind PgBouncer in transaction mode nothing may depend on the session that a statement meets."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.failures.homes import Home
from tests.failures.load import BACK
from tests.failures.pgbouncer import PgBouncer
from tests.processes import Journal, Workers
from tests.queue_state import dead, live, lost


@pytest.fixture
def pooler(home: Home, workers: Workers) -> Iterator[PgBouncer]:
    bouncer = PgBouncer(home)
    try:
        bouncer.start()
        yield bouncer
        workers.reap()
    finally:
        bouncer.remove()


@pytest.fixture
def statements(home: Home) -> Iterator[Path]:
    """A log of every statement that the server runs."""
    home.server.execute("ALTER SYSTEM SET log_statement = 'all'", "SELECT pg_reload_conf()")
    home.server.log.write_text("")
    yield home.server.log
    home.server.execute("ALTER SYSTEM RESET log_statement", "SELECT pg_reload_conf()")


@pytest.mark.homes("postgresql")
def test_transaction_mode(
    home: Home, pooler: PgBouncer, statements: Path, workers: Workers, journal: Journal, gate: Path
) -> None:
    """Three workers and two that enqueue on three server connections; one worker is killed, and the
    pooler restarts."""
    workers.environment = pooler.environment
    victim, *others = [
        workers.ready("--visibility-timeout", 2, "--worker-id", f"worker-{number}") for number in range(3)
    ]
    enqueuers = [
        workers.run("-m", "tests.concurrency.enqueuer", name, journal.path, gate) for name in ("one", "two")
    ]
    workers.wait_until(lambda: len(journal.lines) > 100 and victim.pid in journal.pids, "all is busy")
    victim.reap()
    workers.wait_until(lambda: len(journal.lines) > 300, "the others go on")
    gate.touch()
    assert [enqueuer.join() for enqueuer in enqueuers] == [0, 0]
    pooler.stop(signal.SIGKILL)
    pooler.start()
    workers.wait_until(lambda: not live(), "everything is done", patience=60)

    numbers = {name: int(each.lines[-1]) for name, each in zip(("one", "two"), enqueuers, strict=True)}
    expected = {f"{name}-{number}" for name, count in numbers.items() for number in range(count)}
    assert set(journal.keys) == expected and not dead()
    assert {worker for _, worker in lost()} <= {"worker-0"}
    for worker in others:
        worker.wait_for(BACK, worker.count("in trouble"))
        assert worker.count("Traceback|prepared statement") == 0, worker
        assert worker.stop() == 0
    log = statements.read_text()
    assert "UPDATE _honker_live" in log, "nothing was shown"
    session = r"(LISTEN|PREPARE|DECLARE|SET (?!LOCAL|TRANSACTION)|SELECT pg_advisory_lock)"
    assert not re.findall(rf"(?:statement|execute [^:]*): {session}.*", log, re.IGNORECASE)
    assert not re.findall(r"execute (?!<unnamed>)[^:]*:.*", log), "a statement was prepared by name"
