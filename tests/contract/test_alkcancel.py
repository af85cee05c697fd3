"""``manage.py alkcancel``: by id, by what jobs are, with a look before, and with counts that are true."""

from __future__ import annotations

import builtins
import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from alkstore_django import cancellation, finding
from alkstore_django.finding import JobFilter, LiveJob
from alkstore_django.models import Claim, Job, Run
from alkstore_django.queues import Queue
from tests import factories
from tests.contract import tasks
from tests.factories import claimed, columns, dead, live, run, where

pytestmark = pytest.mark.django_db(databases=["default", "other"])

TASK = '{"__honker_task__":{"task":"a.task","args":[],"kwargs":{}}}'


class Told(Exception):
    def __init__(self, output: str, error: str) -> None:
        super().__init__(output, error)
        self.output, self.error = output, error


def alkcancel(*arguments: object, **options: Any) -> str:
    """What it prints. Raises ``Told`` when the exit code is not 0."""
    output = StringIO()
    try:
        call_command("alkcancel", *map(str, arguments), stdout=output, **options)
    except CommandError as error:
        raise Told(output.getvalue(), str(error)) from error
    return output.getvalue()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the operator types; without an answer, nobody is there."""
    given: list[str] = []
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        if not given:
            raise EOFError
        return given.pop(0)

    monkeypatch.setattr(builtins, "input", answer)
    return given


def test_by_id(queue: Queue) -> None:
    first, second, third = (queue.enqueue(number) for number in range(3))
    assert alkcancel(first, third) == (
        f"Job {first} of queue {queue.name} is cancelled.\nJob {third} of queue {queue.name} is cancelled.\n"
    )
    assert [where(job_id) for job_id in (first, second, third)] == ["run", "live", "run"]


def test_what_runs_is_said_to_run(queue: Queue) -> None:
    job_id = claimed(queue.name, TASK)
    assert alkcancel(job_id) == f"Job {job_id} of queue {queue.name} is cancelled, while it runs.\n"
    assert Run.objects.get(pk=job_id).task == "a.task"


def test_what_cannot_be_cancelled_is_told(queue: Queue) -> None:
    job_id, last = queue.enqueue(1), 2**50
    cancelled = queue.enqueue(2)
    assert queue.cancel(cancelled)
    states = {
        dead(last): "it is a dead letter",
        run(last + 1): "it has succeeded",
        run(last + 2, status=Run.FAILED): "it has failed",
        cancelled: "it was cancelled before",
        last + 3: "nothing is known of it",
    }
    with pytest.raises(Told) as told:
        alkcancel(job_id, *states)
    assert told.value.error == "5 jobs of 6 not cancelled."
    lines = told.value.output.splitlines()
    assert lines[0] == f"Job {job_id} of queue {queue.name} is cancelled."
    assert set(lines[1:]) == {f"Job {each} is not cancelled: {why}." for each, why in states.items()}


def test_an_id_twice_counts_once(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    assert alkcancel(job_id, job_id).count("\n") == 1


def test_options_narrow_ids_down(queue: Queue) -> None:
    here, there = queue.enqueue(1), factories.queue().enqueue(1)
    with pytest.raises(Told) as told:
        alkcancel(here, there, "--queue", queue.name)
    assert f"Job {there} is not cancelled: it is not what the options mean." in told.value.output
    assert (where(here), where(there)) == ("run", "live")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--queue", "mail"], "abc"),
        (["--queue", "mail", "--queue", "other"], "abcd"),
        (["--task", "a.task"], "bd"),
        (["--task", "a.task", "--task", "b.task"], "bcd"),
        (["--queue", "mail", "--task", "a.task"], "b"),
        (["--state", "running"], "c"),
        (["--state", "waiting"], "abd"),
        (["--queue", "mail", "--state", "waiting"], "ab"),
        (["--task", "unknown"], ""),
    ],
    ids=str,
)
def test_by_what_they_are(arguments: list[str], expected: str) -> None:
    jobs = {
        "a": live("mail", "not json"),
        "b": live("mail", TASK, run_at=factories.at(1000)),
        "c": claimed("mail", TASK.replace("a.task", "b.task")),
        "d": live("other", TASK),
    }
    alkcancel("--noinput", *arguments)
    assert "".join(name for name, job_id in jobs.items() if where(job_id) == "run") == expected


def test_it_counts_and_asks(queue: Queue, answers: list[str]) -> None:
    for _ in range(3):
        live(queue.name, TASK)
    live(queue.name)
    claimed(queue.name, TASK)
    counted = f"{queue.name}  (no task)  1 waiting\n{queue.name}  a.task  1 running\n"
    counted += f"{queue.name}  a.task  3 waiting\n"
    answers += ["n", "y"]
    assert alkcancel("--queue", queue.name) == f"{counted}Nothing was cancelled.\n"
    assert Job.objects.filter(queue=queue.name).count() == 5
    assert alkcancel("--queue", queue.name) == f"{counted}5 jobs cancelled.\n"
    assert not Job.objects.filter(queue=queue.name).exists()
    assert answers == []
    assert alkcancel("--queue", queue.name) == "No job matches.\n"


def test_nobody_can_be_asked(queue: Queue, answers: list[str]) -> None:
    job_id = queue.enqueue(1)
    with pytest.raises(Told) as told:
        alkcancel("--queue", queue.name)
    assert told.value.error == "Nobody can be asked here: give --noinput to cancel them."
    assert where(job_id) == "live"
    assert alkcancel("--queue", queue.name, "--noinput").endswith("1 job cancelled.\n")


def test_dry_run(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    assert alkcancel("--queue", queue.name, "--dry-run") == f"{queue.name}  (no task)  1 waiting\n"
    assert alkcancel(job_id, "--dry-run") == f"Job {job_id} of queue {queue.name} would be cancelled.\n"
    with pytest.raises(Told, match="nothing is known of it"):
        alkcancel(2**50, "--dry-run")
    assert where(job_id) == "live"


def test_as_json(queue: Queue) -> None:
    job_id = live(queue.name, TASK)
    job = {"id": job_id, "queue": queue.name, "task": "a.task", "state": "waiting"}
    looked = json.loads(alkcancel("--queue", queue.name, "--json", "--dry-run"))
    expected = {"database": "default", "dry_run": True, "cancelled": [], "not_cancelled": []}
    assert looked == {**expected, "would_be_cancelled": [job]}
    with pytest.raises(Told) as told:
        alkcancel(job_id, 2**50, "--json")
    assert json.loads(told.value.output) == {
        "database": "default",
        "dry_run": False,
        "cancelled": [job],
        "would_be_cancelled": [],
        "not_cancelled": [{"id": 2**50, "reason": "nothing is known of it"}],
    }
    assert json.loads(alkcancel("--queue", queue.name, "--json", "--noinput"))["cancelled"] == []


def test_another_database() -> None:
    here, there = factories.queue(), factories.queue(using="other")
    mine, theirs = here.enqueue(1), there.enqueue(1)
    alkcancel(theirs, "--database", "other")
    assert queue_states(here, mine) == "pending"
    assert queue_states(there, theirs) == "cancelled"


def queue_states(queue: Queue, job_id: int) -> str:
    found = queue.get_job(job_id)
    assert found is not None
    return found.state


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "Say which jobs"),
        (["--noinput"], "Say which jobs"),
        (["--queue", "mail", "--json"], "--json without ids needs --dry-run or --noinput"),
        (["x"], "invalid job_id value: 'x'"),
        ([2**70], "is not the id of a job"),
        (["--state", "dead"], "invalid choice"),
        ([1, "--database", "nowhere"], "There is no database 'nowhere'"),
    ],
)
def test_bad_input(arguments: list[Any], error: str) -> None:
    with pytest.raises(Told) as told:
        alkcancel(*arguments)
    assert error in told.value.error


def test_many(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than fit into one batch, of reading and of cancelling."""
    monkeypatch.setattr(finding, "BATCH", 7)
    monkeypatch.setattr(cancellation, "BATCH", 3)
    ids = queue.enqueue_many(range(50))
    kept = factories.queue().enqueue(1)
    assert [job.id for job in finding.find("default", JobFilter([queue.name]))] == ids
    assert alkcancel("--queue", queue.name, "--noinput").endswith("50 jobs cancelled.\n")
    assert Run.objects.filter(queue=queue.name, status=Run.CANCELLED).count() == 50
    assert where(kept) == "live"


def test_what_has_changed_since_it_was_found(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is still meant is cancelled, and only that is counted."""
    done, begun, waits = queue.enqueue_many(range(3))

    def find(*arguments: Any) -> list[LiveJob]:
        found = list(finding.find(*arguments))
        if columns(begun, "state") == (Job.PENDING,):
            assert queue.cancel(done)
            factories.change(begun, state=Job.PROCESSING, worker_id="w", claim_expires_at=factories.at(60))
        return found

    monkeypatch.setattr("alkstore_django.management.commands.alkcancel.find", find)
    output = alkcancel("--queue", queue.name, "--state", "waiting", "--noinput")
    assert output.endswith("1 job cancelled, 2 not any more.\n")
    assert [where(job_id) for job_id in (done, begun, waits)] == ["run", "live", "run"]


def test_of_what_cannot_be_an_id(queue: Queue) -> None:
    def anything(claim: Claim) -> bool:
        return True

    job_id = queue.enqueue(1)
    ids: list[Any] = ["1", 2**70, None, job_id]
    assert [claim.id for claim in cancellation.cancel_many("default", ids, anything)] == [job_id]


def test_tasks_by_their_stored_names() -> None:
    result = tasks.receipt.enqueue(7)
    assert alkcancel("--task", "contract.receipt", "--noinput").endswith("1 job cancelled.\n")
    result.refresh()
    assert [error.exception_class.__name__ for error in result.errors] == ["TaskCancelled"]


def test_a_letter_that_comes_back_meanwhile(queue: Queue) -> None:
    """What has an id is meant, also if it was not there when it was looked for."""
    letter = dead(5, queue.name)
    left = [True]

    def requeue_after_the_look(execute: Any, sql: str, *rest: Any) -> Any:
        found = execute(sql, *rest)
        if left and sql.startswith("SELECT"):
            left.clear()
            assert queue.requeue([letter]) == 1
        return found

    with connection.execute_wrapper(requeue_after_the_look):
        assert "is cancelled" in alkcancel(letter)
    assert not left and where(letter) == "run"
