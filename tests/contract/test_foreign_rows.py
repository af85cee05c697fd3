"""Other programs write to the same tables: whatever stands there, nothing of ours breaks.

SQLite keeps anything in any column; elsewhere a column has at least its type.
"""

from __future__ import annotations

import pytest
from django.db import connection

from alkstore_django import dead_letters, looks, queues, status, sweeps, turns
from alkstore_django.compat import TaskResultDoesNotExist, task_backends
from alkstore_django.models import Attempt, DeadJob, Job, Lock, Result, Run
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from alkstore_django.turns import Wish
from tests import factories
from tests.factories import ask, where

pytestmark = pytest.mark.django_db

on_sqlite = pytest.mark.only("sqlite")
by_sequence = pytest.mark.only("sqlite", "postgresql")

INVALID = "CAST(x'22ff22' AS TEXT)"
BROKEN = [
    pytest.param(INVALID, id="invalid UTF-8", marks=on_sqlite),
    pytest.param("x'7b7d'", id="a blob", marks=on_sqlite),
    pytest.param("x'00ff'", id="a blob of junk", marks=on_sqlite),
    pytest.param("'{\"a\":' || char(0)", id="NUL", marks=on_sqlite),
    pytest.param("5.5", id="a number", marks=on_sqlite),
    pytest.param("''", id="an empty text"),
    pytest.param("'not json'", id="not JSON"),
    pytest.param("'{\"a\":'", id="half of it"),
    pytest.param("'\"'", id="a lone quote"),
    pytest.param("repeat('[', 100000)", id="too deep", marks=pytest.mark.only("postgresql", "mysql")),
    pytest.param("repeat('9', 5000)", id="too long", marks=pytest.mark.only("postgresql", "mysql")),
]


def insert(queue: str, payload: str = "'{}'", **columns: str) -> int:
    """A row whose columns are SQL."""
    names = ["queue", "payload", *columns]
    values = [f"'{queue}'", payload, *columns.values()]
    (row,) = ask(f"INSERT INTO _honker_live ({', '.join(names)}) VALUES ({', '.join(values)}) RETURNING id")
    return int(row[0])


@pytest.mark.parametrize("payload", BROKEN)
def test_payloads(queue: Queue, payload: str) -> None:
    broken = insert(queue.name, payload, priority="9")
    good = queue.enqueue("good")
    payload_of = f"SELECT {get_dialect(connection).text('payload')} FROM {{}} WHERE id = %s"
    (stored,) = ask(payload_of.format("_honker_live"), [broken])
    assert queue.get_job(broken) is not None
    assert [job.id for job in queue.claim_batch("w", 9) if job.id == good] == [good]
    if payload not in ("x'7b7d'", "5.5"):  # these two are JSON
        assert where(broken) == "dead"
        assert ask(payload_of.format("_honker_dead"), [broken]) == [stored]
        info = queue.get_job(broken)
        assert info is not None
        assert isinstance(info.payload, str)
        assert queues.requeue([broken]) == {broken: broken}
        assert ask(payload_of.format("_honker_live"), [broken]) == [stored]
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(str(broken))


@pytest.mark.parametrize("payload", BROKEN)
def test_payloads_in_sweeps_and_cancels(queue: Queue, payload: str) -> None:
    waiting = insert(queue.name, payload)
    expired = insert(queue.name, payload, expires_at="1")
    lapsed = insert(
        queue.name, payload, state="'processing'", worker_id="'x'", claim_expires_at="1", attempts="9"
    )
    assert sweeps.sweep("default", queue.name, tasks_only=False) == 1
    sweeps.sweep_undecodable("default", queue.name)
    assert where(expired) == "dead"
    turns.reclaim_one("default", "w", Wish(queue.name, 5, 60, tasks_only=False))
    assert where(lapsed) == "dead"
    last = insert(queue.name, payload)
    assert queue.cancel(last)
    assert isinstance(Run.objects.get(pk=last).payload, str)
    assert where(waiting) in ("dead", "live")


@on_sqlite
def test_every_list_can_be_read(queue: Queue) -> None:
    junk = INVALID
    job_id = insert(queue.name, junk, worker_id=junk, state=junk)
    ask(f"UPDATE _honker_live SET queue = {junk} WHERE id = %s", [job_id])
    ask(f"INSERT INTO _honker_dead (id, queue, payload, last_error) VALUES (7, {junk}, {junk}, {junk})")
    ask(f"INSERT INTO _honker_locks VALUES ({junk}, {junk}, 5)")
    ask(f"INSERT INTO _honker_results (job_id, value) VALUES (7, {junk})")
    for model in (Job, DeadJob, Lock, Result):
        assert "\\xff" in "".join(str(value) for value in model.objects.values().get().values())
        assert str(model.objects.get())
    assert {each.queue for each in status.queues("default")} == {'"\\xff"'}
    info = queues.get_job(job_id)
    assert info is not None
    assert (info.queue, info.worker_id, info.payload) == ('"\\xff"', '"\\xff"', '"\\xff"')
    assert queues.get_job(7) is not None


@on_sqlite
def test_a_dead_letter_of_a_queue_that_is_no_text(queue: Queue) -> None:
    ask("INSERT INTO _honker_dead (id, queue, payload) VALUES (7, x'ff', x'ff')")
    assert queues.requeue([7]) == {7: 7}
    assert ask("SELECT queue, payload, typeof(queue) FROM _honker_live") == [(b"\xff", b"\xff", "blob")]
    assert queues.cancel(7)


NUMBERS = [
    *("-9223372036854775808", "9223372036854775807", "-1", "0"),
    *(pytest.param(number, marks=on_sqlite) for number in ("1.5", "1e300", "'high'", "''", "x'ff'")),
]


def look(queue: Queue) -> None:
    """Everything that only looks."""
    wish = Wish(queue.name, 5, 60, tasks_only=False)
    assert isinstance(queue.next_claim_at(), int)
    assert [each.queue for each in status.queues("default")] == [queue.name]
    looks.look("default", [wish])
    turns.has_lapsed("default", [wish])
    turns.is_settled("default", [wish])


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "column", ["priority", "run_at", "attempts", "max_attempts", "created_at", "expires_at"]
)
def test_numbers(queue: Queue, column: str, number: str) -> None:
    odd = insert(queue.name, **{column: number})
    look(queue)
    good = queue.enqueue("good")
    seen = [job.id for job in queue.claim_batch("w", 9)]
    assert good in seen
    look(queue)
    sweeps.sweep("default", queue.name, tasks_only=False)
    sweeps.sweep_undecodable("default", queue.name)
    look(queue)
    assert queue.get_job(odd) is not None
    if where(odd) == "dead":
        assert queue.requeue([odd]) == 1
    assert queue.cancel(odd)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_of_a_claim(queue: Queue, number: str) -> None:
    odd = insert(queue.name, state="'processing'", claim_expires_at=number, worker_id="NULL", attempts="1")
    look(queue)
    good = queue.enqueue("good")
    assert good in [job.id for job in queue.claim_batch("w", 9)]
    look(queue)
    turns.reclaim_one("default", "w", Wish(queue.name, 5, 60, tasks_only=False))
    turns.held_by("default", "w", [queue.name])
    assert queue.cancel(odd)


@pytest.mark.parametrize(
    "job_id",
    [
        -(2**63),
        -1,
        2**60,
        # MariaDB takes 0 for the next id, and gives no id any more after the last one.
        *(pytest.param(job_id, marks=by_sequence) for job_id in (0, 2**62, 2**63 - 1)),
    ],
)
def test_ids(queue: Queue, job_id: int) -> None:
    insert(queue.name, id=str(job_id))
    factories.dead(job_id, "another")
    info = queue.get_job(job_id)
    assert info is not None
    assert info.id == job_id
    job = queue.claim_one("w")
    assert job is not None
    assert job.id == job_id
    assert queue.release(job)
    assert queue.cancel(job_id)
    assert where(job_id).startswith("dead")


def test_an_exhausted_job_can_always_die(queue: Queue) -> None:
    """Its id is taken among the dead, and the highest of all ids is, too."""
    factories.dead(2**63 - 1, "another")
    job_id = factories.dead(insert(queue.name), "another")
    job = queue.claim_one("w")
    assert job is not None
    assert queue.fail(job, "no")
    assert DeadJob.objects.filter(queue=queue.name).exclude(pk=job_id).count() == 1
    assert len(dead_letters.history("default", job_id)) == 3


def test_rows_of_history_that_do_not_belong_to_anything(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    Attempt.objects.create(job_id=job_id, kind="unknown", ended_at=5)
    Attempt.objects.create(job_id=job_id, kind="requeued", ended_at=5, life=9)
    job = queue.claim_one("w")
    assert job is not None
    assert queue.fail(job, "no")
    assert queue.requeue([job_id]) == 1
