"""Paused queues beside open ones, in real workers: what is not started, what goes on, and the commands."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection, transaction

from alkstore_django.models import Job, QueueControl, Run
from alkstore_django.pauses import paused
from alkstore_django.queues import Queue
from tests import factories
from tests.app import tasks
from tests.factories import ask, at
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, history, live

pytestmark = pytest.mark.django_db(transaction=True)

SERVED = ("--queue", "mails", "--queue", "default")


def mail(journal: Journal, line: object, seconds: float = 0) -> int:
    return int(tasks.write.using(queue_name="mails").enqueue(journal.path, str(line), seconds).id)


def probe(workers: Workers, journal: Journal, line: str) -> None:
    """A job of a queue that is not paused is done: a worker has looked for jobs since the call."""
    tasks.write.enqueue(journal.path, line)
    workers.wait_until(lambda: line in journal.keys and not live(queue="default"), f"{line} is done")


def is_untouched(*job_ids: int) -> bool:
    rows = Job.objects.filter(pk__in=job_ids, state="pending", attempts=0, worker_id=None)
    return rows.count() == len(job_ids)


def is_paused(worker: Process, times: int = 1) -> None:
    worker.wait_for("INFO Queue mails is paused", times)


def test_while_jobs_flow(workers: Workers, journal: Journal) -> None:
    two = [workers.ready(*SERVED, "--threads", 2) for _ in range(2)]
    for number in range(300):
        mail(journal, f"before-{number}", 0.1)
    workers.wait_until(lambda: len(journal.keys) > 20, "some are done")
    Queue("mails").pause(by="deploy")
    for worker in two:
        worker.wait_for("INFO Queue mails is paused by deploy")
    workers.wait_until(lambda: not live(state="processing"), "what has started goes on and is settled")
    done = len(journal.keys)
    assert done < 300
    waiting = [mail(journal, f"after-{number}") for number in range(10)]
    for number in range(5):
        probe(workers, journal, f"probe-{number}")
    assert len(journal.keys) == done + 5
    assert is_untouched(*waiting)
    Queue("mails").resume()
    workers.wait_until(lambda: not live(), "all are done")
    assert len(journal.keys) == 300 + 10 + 5
    assert all(worker.stop() == 0 for worker in two)
    for worker in two:
        assert worker.count("is paused") == worker.count("INFO Queue mails is resumed") == 1


def test_it_survives_a_restart(workers: Workers, journal: Journal) -> None:
    Queue("mails").pause()
    waiting = mail(journal, "waiting")
    for start in range(2):
        worker = workers.ready(*SERVED)
        probe(workers, journal, f"probe-{start}")
        is_paused(worker)
        assert is_untouched(waiting)
        assert worker.stop() == 0
    workers.ready(*SERVED)
    probe(workers, journal, "third")
    Queue("mails").resume()
    workers.wait_until(lambda: not live(), "the mail is sent", patience=5)


def test_it_ends_by_itself(workers: Workers, journal: Journal) -> None:
    Queue("mails").pause("2s")
    until = QueueControl.objects.get(pk="mails").paused_until  # also when that is over already
    waiting = mail(journal, "waiting")
    worker = workers.ready("--queue", "mails")
    workers.wait_until(lambda: not live(), "the mail is sent")
    assert until is not None and (Run.objects.get(pk=waiting).started_at or 0) >= until
    assert worker.stop() == 0


def test_a_worker_whose_only_queue_is_paused(workers: Workers, journal: Journal) -> None:
    """It has nothing to look for, and yet it sees the resume at once."""
    worker = workers.ready("--queue", "mails")
    for times in (1, 2, 3):
        Queue("mails").pause()
        is_paused(worker, times)
        mail(journal, times)
        Queue("mails").resume()
        workers.wait_until(lambda: not live(), "the mail is sent", patience=5)
    assert journal.keys == ["1", "2", "3"]
    assert worker.stop() == 0


def test_a_running_task_goes_on(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(tasks.hold.using(queue_name="mails").enqueue(journal.path, "held", str(gate)).id)
    worker = workers.ready(*SERVED, "--threads", 2)
    workers.wait_until(lambda: journal.lines == ["start held"], "it runs")
    Queue("mails").pause()
    is_paused(worker)
    assert Job.objects.get(pk=job_id).state == "processing"
    gate.touch()
    workers.wait_until(lambda: not live(), "it is settled")
    assert Run.objects.get(pk=job_id).attempts == 1


def test_lapsed_jobs_wait_and_sweeps_go_on(workers: Workers, journal: Journal) -> None:
    lapsed = mail(journal, "lapsed")
    (claim,) = Queue("mails").claim_batch("vanished", 1)
    assert claim.id == lapsed
    factories.lapse(lapsed)
    expired = mail(journal, "expired")
    factories.change(expired, expires_at=at(-1))
    Queue("mails").pause()
    worker = workers.ready(*SERVED)
    workers.wait_until(lambda: dead() == {expired: "expired"}, "the sweep has seen it")
    for number in range(3):
        probe(workers, journal, f"probe-{number}")
    assert Job.objects.get(pk=lapsed).worker_id == "vanished"
    assert history(lapsed) == []
    Queue("mails").resume()
    workers.wait_until(lambda: not live(), "it runs again")
    assert history(lapsed) == ["lost"]
    assert worker.stop() == 0


def test_batch_leaves_it(workers: Workers, journal: Journal) -> None:
    with transaction.atomic():
        waiting = mail(journal, "waiting")
        tasks.write.enqueue(journal.path, "open")
        Queue("mails").pause()
    worker = workers.start(*SERVED, "--batch")
    assert worker.join() == 0
    assert journal.keys == ["open"]
    assert worker.count("WARNING Queue mails is paused; what it holds was left alone.") == 1
    assert is_untouched(waiting)
    assert workers.start("--batch", "--queue", "mails").join() == 0
    assert is_untouched(waiting)


# -- commands -------------------------------------------------------------------------------------------


def command(*arguments: object) -> tuple[str, str]:
    """What a command prints: to the standard output, and beside it."""
    output, errors = StringIO(), StringIO()
    call_command(*map(str, arguments), stdout=output, stderr=errors)
    return output.getvalue(), errors.getvalue()


def test_the_commands() -> None:
    Queue("mails").enqueue(1)
    assert command("alkpause", "mails", "--by", "deploy") == (
        "Queue mails is paused until it is resumed.\n",
        "",
    )
    (pause,) = paused()
    assert (pause.by, pause.until) == ("deploy", None)
    line = re.compile(
        r"^mails is paused since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* until (.+), by (.+)\.$", re.M
    )
    found = line.search(command("alkstatus")[0])
    assert found and found.groups() == ("it is resumed", "deploy")

    output, _ = command("alkpause", "mails", "other", "--for", "10m")
    assert re.fullmatch(
        r"(Queue (mails|other) is paused until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S+\.\n){2}", output
    )
    assert [pause.by.count("@") for pause in paused()] == [1, 1]
    assert command("alkstatus")[0].count(" is paused since ") == 2

    expected = "Queue other is resumed.\nQueue nobody's was not paused.\nQueue mails is resumed.\n"
    assert command("alkresume", "other", "nobody's", "mails") == (expected, "")
    assert paused() == []
    assert "is paused" not in command("alkstatus")[0]


def test_a_pause_that_has_ended_before_it_is_told() -> None:
    def resume(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT") and "paused_until - " in sql:
            ask("DELETE FROM alkstore_queue_controls")
        return execute(sql, *rest)

    with connection.execute_wrapper(resume):
        output, _ = command("alkpause", "mails", "--for", "10m")
    assert output == "Queue mails was paused, and is not any more.\n"


@pytest.mark.only("postgresql")
def test_a_queue_is_resumed_and_told_of_or_neither() -> None:
    def fail(execute: Any, sql: str, *rest: Any) -> Any:
        if "pg_notify" in sql:
            raise OperationalError("the connection is lost")
        return execute(sql, *rest)

    Queue("mails").pause()
    with connection.execute_wrapper(fail), pytest.raises(OperationalError):
        Queue("mails").resume()
    assert Queue("mails").is_paused() and Queue("mails").resume()


def test_a_queue_that_nobody_knows() -> None:
    output, note = command("alkpause", "mials")
    assert output == "Queue mials is paused until it is resumed.\n"
    assert note.startswith("Note: ")
    assert Queue("mials").is_paused()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["mails", "--for", "soon"],
            "argument --for: it must be a duration such as 90s, 10m, 2h or 1d, not 'soon'",
        ),
        (["mails", "--for", "0"], "argument --for: it must be from 1 to"),
        (["mails", "--by", "a\nb"], "holds the control character"),
        ([" mails"], "begins or ends with white space"),
        (["mails", ""], "A queue name has 1 to 191 characters"),
        (["mails", "--database", "nowhere"], "There is no database 'nowhere'"),
        ([], "required"),
    ],
)
def test_nonsense_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=re.escape(message)):
        command("alkpause", *arguments)
    assert paused() == []


def test_a_database_that_is_away(workers: Workers) -> None:
    for name in ("alkpause", "alkresume"):
        process = workers.start("mails", command=name, DJANGO_SETTINGS_MODULE="tests.e2e.away")
        assert process.join() == 1
        assert process.lines[0].startswith("CommandError: Database 'default' does not answer: ")
