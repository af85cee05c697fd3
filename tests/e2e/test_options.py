"""What ``alkworker`` can be told, and what it answers to nonsense."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction

from alkstore_django.compat import BaseTaskBackend
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.processes import Journal, Workers
from tests.queue_state import history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def test_batch_waits_for_retries_and_for_nothing_else(workers: Workers, journal: Journal) -> None:
    retried = int(tasks.fail_times_slowly.enqueue(journal.path, 1).id)
    delayed = int(tasks.nothing.using(run_after=timedelta(hours=1)).enqueue().id)
    foreign = Queue("default").enqueue({"not": "a task"})
    assert workers.start("--batch").join() == 0
    assert journal.lines == ["run", "run"]
    assert history(retried) == ["failed"]
    assert succeeded() == {retried}
    assert set(Job.objects.values_list("id", "attempts")) == {(delayed, 0), (foreign, 0)}


def test_batch_waits_for_what_others_run(workers: Workers, journal: Journal) -> None:
    theirs = int(tasks.nothing.using(priority=1).enqueue().id)
    (claim,) = Queue("default").claim_batch("another", 1)
    assert claim.id == theirs
    worker = workers.start("--batch", "--interval", 0.01)
    for probe in map(str, range(10)):  # it has found nothing to do in between, and is still there
        tasks.write.enqueue(journal.path, probe)
        workers.wait_until(lambda probe=probe: journal.keys[-1:] == [probe], f"probe {probe} is done")
        workers.wait_until(lambda: live() == 1, "it is settled")
    assert worker.is_running
    assert Queue("default").ack(claim)
    assert worker.join(patience=5) == 0


def test_batch_ends_at_once_without_jobs(workers: Workers) -> None:
    assert workers.start("--batch", "--queue", "nobody writes here").join(patience=10) == 0


def test_max_tasks(workers: Workers, journal: Journal) -> None:
    for number in range(10):
        tasks.write.enqueue(journal.path, number)
    assert workers.start("--max-tasks", 3, "--threads", 2).join(patience=10) == 0
    assert len(journal.lines) == 3
    assert live(state="pending", attempts=0) == 7
    assert live() == 7


def test_queues_in_order_of_precedence(workers: Workers, journal: Journal) -> None:
    with transaction.atomic():
        for queue, priority in (("low", 100), ("high", 0), ("other", 100)):
            for number in range(3):
                task = tasks.write.using(queue_name=queue, priority=priority)
                task.enqueue(journal.path, f"{queue}-{number}")
    arguments = ("--queue", "high", "--queue", "low", "--queue", "high", "--threads", 1, "--batch")
    worker = workers.start(*arguments)
    assert worker.join() == 0
    assert journal.keys == ["high-0", "high-1", "high-2", "low-0", "low-1", "low-2"]
    assert worker.count(" serves high, low.$") == 1
    assert live(queue="other", attempts=0) == live() == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--queue", ""], "A queue name has 1 to 191 characters, this has 0."),
        (["--queue", " mails"], "begins or ends with white space"),
        (["--queue", "mails\n"], "begins or ends with white space"),
        (["--queue", "ma\x00ils"], "holds the control character"),
        (["--queue", "m" * 192], "A queue name has 1 to 191 characters, this has 192."),
        (["--queue", "mails", "--queue", "m*s"], "--queue takes names, '*' and 'prefix*', not 'm*s'."),
        (["--queue", "mails,"], "A queue name has 1 to 191 characters, this has 0."),
        (["--exclude-queue", "*s"], "--queue takes names, '*' and 'prefix*', not '*s'."),
        (["--queue", "mails", "--exclude-queue", "m*"], "no queue to serve"),
        (["--worker-id", "a\nb"], "holds the control character"),
        (["--database", "nowhere"], "There is no database 'nowhere'; there are default, other."),
        (["--threads", "0"], "0 is not from 1 to 2147483647"),
        (["--threads", "many"], "invalid positive value: 'many'"),
        (["--max-tasks", "-1"], "-1 is not from 1"),
        (["--visibility-timeout", "99999999999"], "99999999999 is not from 1 to 2147483647"),
        (["--interval", "nan"], "nan is not a number of seconds"),
        (["--shutdown-timeout", "-1"], "-1 is not a number of seconds"),
    ],
)
def test_nonsense_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError) as caught:
        call_command("alkworker", *arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_queue_to_serve(settings: Any) -> None:
    package = BaseTaskBackend.__module__.rpartition(".")[0]  # of Django, or of the backport
    settings.TASKS = {"default": {"BACKEND": f"{package}.immediate.ImmediateBackend"}}
    with pytest.raises(CommandError, match="name a --queue"):
        call_command("alkworker", "--batch")


def refused(workers: Workers, command: str, *arguments: object, **environment: str) -> str:
    """The one line with which the command ends, in a process of its own."""
    process = workers.start(*arguments, command=command, **environment)
    assert process.join() == 1
    (line,) = process.lines
    return line


@pytest.mark.parametrize("command", ["alkworker", "alkstatus"])
def test_an_unknown_database_is_one_line(workers: Workers, command: str) -> None:
    line = refused(workers, command, "--database", "nowhere")
    assert line == "CommandError: There is no database 'nowhere'; there are default, other."


def test_a_bad_name_is_one_line(workers: Workers) -> None:
    line = refused(workers, "alkworker", "--queue", "mails ")
    assert line == "CommandError: The queue name 'mails ' begins or ends with white space."


def test_missing_tables_are_one_line(workers: Workers, bare_settings: str) -> None:
    for command in ("alkworker", "alkstatus"):
        line = refused(workers, command, DJANGO_SETTINGS_MODULE=bare_settings)
        assert line.startswith("CommandError: Database 'default' has no table ")
        assert "run manage.py migrate" in line


def test_status_of_a_database_that_is_away(workers: Workers) -> None:
    line = refused(workers, "alkstatus", DJANGO_SETTINGS_MODULE="tests.e2e.away")
    assert line.startswith("CommandError: Database 'default' does not answer: ")
