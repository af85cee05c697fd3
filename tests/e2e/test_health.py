"""``alkhealth`` as monitoring and probes use it: exit codes, lines, one JSON document, and never for long."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from alkstore_django.models import Job, WorkerProcess
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.factories import at
from tests.processes import Process, Workers
from tests.servers import DEFAULTS
from tests.settings import DB

pytestmark = pytest.mark.django_db(transaction=True)


def probe(workers: Workers, *arguments: object, **environment: str) -> Process:
    process = workers.start(*arguments, command="alkhealth", **environment)
    process.join()
    return process


def report(workers: Workers, *arguments: object, **environment: str) -> tuple[int, dict[str, Any]]:
    process = probe(workers, "--json", *arguments, **environment)
    return process.join(), json.loads(process.output)


def codes(found: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(each["code"], each["queue"] or each["worker_id"]) for each in found["findings"]]


def test_with_and_without_a_worker(workers: Workers) -> None:
    process = probe(workers)
    assert process.join() == 1
    assert process.lines == ["PROBLEM no-worker: No worker serves queue default."]
    process = probe(workers, "--ignore", "no-worker")
    assert process.join() == 0
    assert process.lines == ["note no-worker: No worker serves queue default.", "Healthy."]

    worker = workers.ready()
    process = probe(workers)
    assert process.join() == 0
    assert process.lines == ["Healthy."]
    assert worker.stop() == 0
    assert probe(workers).join() == 1


def test_the_document(workers: Workers) -> None:
    worker = workers.ready("--queue", "mail*", "--exclude-queue", "mail-x", "--worker-id", "me")
    Queue("mail").pause("1h", by="deploy")
    tasks.nothing.using(queue_name="mail").enqueue()
    code, found = report(workers, "--ignore", "no-worker")
    assert code == 0
    assert list(found) == ["healthy", "database", "checked_at", "findings", "queues", "workers"]
    assert (found["healthy"], found["database"]) == (True, "default")
    assert isinstance(found["checked_at"], int)
    assert codes(found) == [("no-worker", "default"), ("paused", "mail")]
    for finding in found["findings"]:
        assert list(finding) == ["code", "message", "is_problem", "queue", "worker_id", "seconds"]
        assert not finding["is_problem"]
    assert [(each["queue"], each["workers"], each["is_paused"]) for each in found["queues"]] == [
        ("default", 0, False),
        ("mail", 1, True),
    ]
    assert [each["oldest_due"] is None for each in found["queues"]] == [True, False]
    (entry,) = found["workers"]
    facts = ("worker_id", "pid", "queues", "excluded", "running", "is_stale")
    assert [entry[name] for name in facts] == ["me", worker.pid, ["mail*"], ["mail-x"], 0, False]
    assert set(entry) - set(facts) == {"host", "version", "started_at", "heartbeat_at", "silent_for"}


def test_a_killed_worker(workers: Workers) -> None:
    killed, alive = workers.ready("--worker-id", "killed"), workers.ready()
    assert killed.stop(signal.SIGKILL) == -9
    assert report(workers)[0] == 0, "it may still be there"
    WorkerProcess.objects.filter(pk="killed").update(heartbeat_at=at(-70))
    code, found = report(workers)
    assert (code, codes(found)) == (1, [("stale-worker", "killed")])
    assert alive.stop() == 0
    code, found = report(workers)
    assert (code, codes(found)) == (1, [("no-worker", "default"), ("stale-worker", "killed")])


def test_a_job_that_waits_for_too_long(workers: Workers) -> None:
    job_id = tasks.nothing.using(queue_name="mail").enqueue().id
    Job.objects.filter(pk=job_id).update(run_at=at(-400))
    workers.ready()
    for arguments, expected in {
        (): [("no-worker", "mail"), ("oldest-due", "mail")],
        ("--max-age", "10m"): [("no-worker", "mail")],
    }.items():
        code, found = report(workers, *arguments)
        assert (code, codes(found)) == (1, expected)


# -- the database ---------------------------------------------------------------------------------------


def test_a_database_that_cannot_be_reached(workers: Workers) -> None:
    process = probe(workers, DJANGO_SETTINGS_MODULE="tests.e2e.away")
    assert process.join() == 1
    (line,) = process.lines
    assert line.startswith("PROBLEM database: Database 'default' cannot be asked: ")
    code, found = report(workers, DJANGO_SETTINGS_MODULE="tests.e2e.away")
    assert (code, found["healthy"], found["checked_at"]) == (1, False, None)
    assert codes(found) == [("database", None)]


@pytest.fixture
def silent_server() -> Iterator[dict[str, str]]:
    """Where connections are accepted, and nobody ever says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        prefix = DEFAULTS[DB][0]
        yield {f"{prefix}_HOST": "127.0.0.1", f"{prefix}_PORT": str(server.getsockname()[1])}


@pytest.mark.only("postgresql", "mysql")
def test_a_database_that_never_answers(workers: Workers, silent_server: dict[str, str]) -> None:
    process = probe(workers, "--timeout", "1", **silent_server)
    assert process.join() == 1
    assert process.lines == ["PROBLEM database: Database 'default' does not answer within 1 s."]
    code, found = report(workers, "--timeout", "1s", **silent_server)
    assert (code, codes(found)) == (1, [("database", None)])


def test_missing_tables(workers: Workers, bare_settings: str) -> None:
    code, found = report(workers, DJANGO_SETTINGS_MODULE=bare_settings)
    assert (code, codes(found)) == (1, [("tables", None)])
    assert found["findings"][0]["message"].endswith("run manage.py migrate.")


@pytest.mark.only("sqlite")
def test_unsafe_settings_of_sqlite(workers: Workers) -> None:
    workers.ready()
    code, found = report(workers, DJANGO_SETTINGS_MODULE="tests.e2e.unsafe")
    assert code == 1
    assert codes(found) == [("settings", None), ("settings", None)]
    messages = " ".join(each["message"] for each in found["findings"])
    assert "alkstore_django.W003" in messages
    assert "alkstore_django.W006" in messages
    silenced = "alkstore_django.W003,alkstore_django.W006"
    assert report(workers, DJANGO_SETTINGS_MODULE="tests.e2e.unsafe", SILENCED=silenced)[0] == 0


# -- the command ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--max-age", "soon"), "argument --max-age: it must be a duration such as 90s, 10m, 2h or 1d"),
        (("--timeout", "0"), "argument --timeout: it must be from 1 to"),
        (("--ignore", "everything"), "argument --ignore: invalid choice: 'everything'"),
        (("--database", "nowhere"), "There is no database 'nowhere'"),
    ],
)
def test_nonsense_is_refused(workers: Workers, arguments: tuple[str, ...], message: str) -> None:
    process = probe(workers, *arguments)
    assert process.join() in (1, 2)
    assert message in process.output
    assert "Traceback" not in process.output


def test_a_probe_loads_nothing_of_the_worker(workers: Workers) -> None:
    code = (
        "import django, sys; django.setup()\n"
        "from django.core.management import call_command\n"
        "try:\n    call_command('alkhealth', ignore=['no-worker'])\n"
        "finally:\n    print(*sorted(name for name in sys.modules if 'alkstore_django.runtime' in name))\n"
    )
    process = workers.run("-c", code)
    assert process.join() == 0
    assert process.lines == ["note no-worker: No worker serves queue default.", "Healthy.", ""]
