"""A worker outlives its database: sessions that are ended, a server that is not there yet, lost answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, connection

from alkstore_django.models import Run
from tests.app import contextual, outboxes, tasks
from tests.e2e.connections import SETTINGS
from tests.processes import Journal, Process, Workers
from tests.proxy import Proxy
from tests.queue_state import dead, history, live, succeeded
from tests.servers import DEFAULTS, address
from tests.settings import DB, TEST_DIR

pytestmark = pytest.mark.django_db(transaction=True)

with_sessions = pytest.mark.only("postgresql", "mysql")  # SQLite has no sessions that somebody could end
TROUBLE = "WARNING The database is in trouble"
BACK = "INFO The database is back"


def end_sessions() -> None:
    """End every session of the test database but our own."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return
        cursor.execute(
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        )
        for (session,) in cursor.fetchall():
            try:
                cursor.execute(f"KILL {int(session)}")
            except DatabaseError as error:
                if error.args[0] != 1094:  # it has ended by itself
                    raise


def outages(worker: Process, times: int) -> None:
    """So many outages, each of them told once, are over."""
    worker.wait_for(BACK, times)
    assert worker.count(TROUBLE) == times
    assert worker.count("Traceback") == 0


@with_sessions
def test_sessions_end_while_it_is_idle(workers: Workers, journal: Journal) -> None:
    worker = workers.ready()
    for times in (1, 2, 3):
        end_sessions()
        outages(worker, times)
    tasks.write.enqueue(journal.path, "after")
    workers.wait_until(lambda: not live(), "a job is done")
    assert worker.stop() == 0
    assert journal.keys == ["after"]


@with_sessions
@pytest.mark.parametrize("settings", SETTINGS)
def test_sessions_end_while_tasks_run(
    workers: Workers, journal: Journal, tmp_path: Path, settings: str
) -> None:
    """A task without queries never notices; one with queries runs again, and finds a good connection."""
    worker = workers.ready("--threads", 3, DJANGO_SETTINGS_MODULE=settings)
    quiet, asking = [], []
    for times in (1, 2, 3):
        gate = tmp_path / f"gate-{times}"
        quiet.append(int(tasks.hold.enqueue(journal.path, f"quiet-{times}", str(gate)).id))
        asking.append(int(tasks.hold_with_queries.enqueue(journal.path, f"asking-{times}", str(gate)).id))
        starts = [f"start quiet-{times}", f"start asking-{times}"]
        workers.wait_until(lambda starts=starts: set(starts) <= set(journal.lines), "both run")
        end_sessions()
        worker.wait_for(BACK, times)
        gate.touch()
        workers.wait_until(lambda: not live(), "both are done")
    assert worker.stop() == 0

    assert worker.count(TROUBLE) == 3
    for job_id, line in zip(quiet, ("quiet-1", "quiet-2", "quiet-3"), strict=True):
        assert [each for each in journal.lines if each.endswith(line)] == [f"start {line}", f"end {line}"]
        assert Run.objects.get(pk=job_id).attempts == 1
    assert [journal.lines.count(f"end asking-{times}") for times in (1, 2, 3)] == [1, 1, 1]
    assert {*quiet, *asking} == succeeded()
    assert [history(job_id) for job_id in asking] == [["failed"]] * 3
    assert not dead()


@pytest.mark.parametrize(
    "read",
    [
        "SELECT .*alkstore_metadata",
        "SELECT 1 FROM alkstore_outbox_events",
        "SELECT job_id, .*FROM alkstore_outbox_events",
    ],
)
def test_the_connection_is_lost_between_a_claim_and_its_tasks(
    workers: Workers, journal: Journal, read: str
) -> None:
    """Nothing is held that nobody runs, and no attempt is spent."""
    told = [int(tasks.write.enqueue(journal.path, "sync").id), int(contextual.tell_async.enqueue().id)]
    events = [{"path": str(journal.path), "n": n} for n in (1, 2)]
    outboxes.write.enqueue_many(events, keys=["k", "k"])
    worker = workers.start("--batch", ALKSTORE_CUT=read, DJANGO_SETTINGS_MODULE="tests.e2e.cut_off")
    assert worker.join() == 0
    outages(worker, 1)
    assert [line for line in journal.lines if line.startswith("k ")] == ["k 1", "k 2"]
    assert journal.keys.count("sync") == 1
    assert {*told} <= succeeded() and not dead()
    assert {run.attempts for run in Run.objects.all()} == {1}


class LateDatabase:
    """The test database at an address where it can be reached only after ``open``."""

    def __init__(self, tmp_path: Path) -> None:
        self.proxy: Proxy | None = None
        if DB == "sqlite":
            self._link = tmp_path / "link"
            self.environment = {"ALKSTORE_TEST_DIR": str(self._link)}
        else:
            server = address(DB)
            self.proxy = Proxy(server["HOST"], int(server["PORT"]))
            prefix = DEFAULTS[DB][0]
            self.environment = {f"{prefix}_HOST": "127.0.0.1", f"{prefix}_PORT": str(self.proxy.port)}
            self.environment |= {"PGSSLMODE": "disable"}  # the proxy reads what passes

    def open(self) -> None:
        if self.proxy is None:
            self._link.symlink_to(TEST_DIR)
        else:
            self.proxy.open()

    def close(self) -> None:
        if self.proxy is not None:
            self.proxy.close()


@pytest.fixture
def late(tmp_path: Path) -> Iterator[LateDatabase]:
    database = LateDatabase(tmp_path)
    try:
        yield database
    finally:
        database.close()


def test_a_database_that_comes_later(workers: Workers, journal: Journal, late: LateDatabase) -> None:
    worker = workers.start("--batch", checks=True, **late.environment)
    worker.wait_for(TROUBLE)
    tasks.write.enqueue(journal.path, "early")
    late.open()
    assert worker.join() == 0
    assert journal.keys == ["early"]
    outages(worker, 1)


@with_sessions
def test_no_sign_of_health_while_the_database_is_away(
    workers: Workers, journal: Journal, gate: Path, late: LateDatabase, tmp_path: Path
) -> None:
    """All its threads are busy: only the heartbeat would ask the database."""
    assert late.proxy is not None
    late.open()
    tasks.hold.enqueue(journal.path, "held", str(gate))
    file = tmp_path / "health.json"
    worker = workers.ready("-v", 2, "--threads", 1, "--health-file", file, **late.environment)
    workers.wait_until(lambda: journal.lines, "the task runs")
    late.proxy.close()
    worker.wait_for(TROUBLE)
    written = file.stat().st_mtime_ns
    worker.wait_for("The database is still in trouble", 8)  # which takes longer than from beat to beat
    assert file.stat().st_mtime_ns == written
    gate.touch()


def test_a_stop_while_the_database_is_away(workers: Workers, late: LateDatabase) -> None:
    worker = workers.start(checks=True, **late.environment)
    worker.wait_for(TROUBLE)
    assert worker.stop(patience=5) == 0


@with_sessions
@pytest.mark.parametrize(
    ("marker", "times"),
    [("SET state = 'processing'", 0), ("DELETE FROM _honker_live", 0), ("SET state = 'pending'", 1)],
    ids=["claim", "ack", "retry"],
)
def test_a_commit_without_an_answer(
    workers: Workers, journal: Journal, late: LateDatabase, marker: str, times: int
) -> None:
    """It was done, and the worker cannot know: no claim stays behind, and nothing is done twice."""
    assert late.proxy is not None
    late.open()
    worker = workers.ready(DJANGO_SETTINGS_MODULE="tests.e2e.unprepared", **late.environment)
    late.proxy.lose_answer_to_commit_after(marker)
    job_id = int(tasks.fail_times.enqueue(journal.path, times).id)
    workers.wait_until(late.proxy.answer_lost.is_set, "the answer is lost")
    workers.wait_until(lambda: not live(), "the job is done", patience=10)
    worker.wait_for(BACK)
    assert worker.stop() == 0
    assert worker.count(TROUBLE) == 1
    assert worker.count("was lost") == 0
    assert journal.lines == ["run"] * (times + 1)
    assert Run.objects.get(pk=job_id).attempts == times + 1
    assert history(job_id) == ["failed"] * times


@pytest.mark.only("postgresql")  # where one database can be made read-only
def test_a_server_that_is_read_only_for_a_while(workers: Workers, journal: Journal) -> None:
    """As after a failover, to a server that is not promoted yet."""
    worker = workers.ready("-v", 2)
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            end_sessions()
            tasks.write.enqueue(journal.path, "job")
            worker.wait_for("in a read-only transaction")
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    workers.wait_until(lambda: not live(), "the job is done")
    outages(worker, 1)
    assert journal.keys == ["job"]
