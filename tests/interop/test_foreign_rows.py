"""What honker, or anybody with SQL, leaves in a queue that our worker serves: not a column of it changes."""

from __future__ import annotations

import json
import math

import pytest

from alkstore_django import queues
from alkstore_django.queues import Queue
from tests.interop import tasks
from tests.interop.honker import HonkerQueue
from tests.interop.shared import SharedFile

NO_JSON = ["CAST(x'7b22ff227d' AS TEXT)", "CAST(x'22c3' AS TEXT)", "''", "'not json'", "x'00ff'"]
"""Payloads as SQL: two that are not UTF-8, none at all, plain text, and a BLOB."""

NO_ENVELOPE = [
    """'{"__honker_task__": 1}'""",
    """'{"__honker_task__":{"task":["shop.send"]}}'""",
    """'{"__honker_task__": {"task": "shop.send", "args": {}}}'""",
    """'{"__honker_task__": {"task": "shop.send", "kwargs": []}}'""",
    """'{"__honker_task__": {"task": "shop'""",
    """CAST('{"__honker_task__": {"task": "' || x'ff' || '"}}' AS TEXT)""",
]
"""Payloads that begin like a task: honker's worker would stop at some of them for good."""

TASK = '"__honker_task__": {"task": "tests.interop.tasks.add", "args": [1, 2]}}'


def insert(shared: SharedFile, payload: str, queue: str = "'default'") -> None:
    shared.execute(f"INSERT INTO _honker_live (queue, payload) VALUES ({queue}, {payload})")


def every_byte(shared: SharedFile, table: str = "_honker_live") -> dict[int, list[str]]:
    """Type and bytes of each column of each row, by id."""
    columns = [row["name"] for row in shared.rows(f"SELECT name FROM pragma_table_info('{table}')")]
    exact = ", ".join(f"typeof({name}) || ' ' || hex({name}) AS {name}" for name in columns)
    rows = shared.rows(f"SELECT id AS row_id, {exact} FROM {table}")
    return {row.pop("row_id"): list(row.values()) for row in rows}


@pytest.fixture
def left_by_honker(shared: SharedFile, their_default: HonkerQueue) -> dict[int, list[str]]:
    """Jobs of honker's that are no tasks, in every state that a sweep or a claim might look for."""
    for number, payload in enumerate([{"x": math.nan}, [math.inf], "text", 7, None, {"to": "é"}]):
        their_default.enqueue(payload, priority=number)
    their_default.enqueue("expired", expires=0)
    their_default.enqueue("later", delay=3600)
    held, lapsed, spent, zombie = (their_default.enqueue(n, priority=50, max_attempts=2) for n in range(4))
    assert [job["id"] for job in their_default.claim_batch("h", 4)] == [held, lapsed, spent, zombie]
    for job_id in (lapsed, spent, zombie):
        shared.lapse(job_id)
    shared.set(zombie, "expires_at", -1)
    exhausted = their_default.enqueue("exhausted", max_attempts=1, priority=99)
    shared.execute("UPDATE _honker_live SET attempts = 2 WHERE id IN (%s, %s)", spent, exhausted)
    insert(shared, f"""'{{"trace": 1, {TASK}'""")  # honker reads the key wherever it stands
    insert(shared, f"""'{{ {TASK}'""")
    return every_byte(shared)


def we_run_the_tasks_of(shared: SharedFile, theirs: HonkerQueue, *options: str) -> None:
    """A task of ours, and one that honker's ``enqueue`` was given, among the rows of the test."""
    mine = tasks.add.enqueue(1, 2)
    its = theirs.enqueue({"__honker_task__": {"task": "tests.interop.tasks.add", "args": [3, 4]}})
    shared.manage("alkworker", "--batch", *options)
    assert theirs.get_result(int(mine.id)) == [True, 3]
    assert theirs.get_result(its) == [True, 7]
    assert queues.get_job(its) is not None


@pytest.mark.parametrize("options", [(), ("--queue=default",)])
def test_honker_left_jobs_that_are_no_tasks_and_our_worker_changes_none(
    shared: SharedFile,
    their_default: HonkerQueue,
    left_by_honker: dict[int, list[str]],
    options: tuple[str, ...],
) -> None:
    we_run_the_tasks_of(shared, their_default, *options)
    assert every_byte(shared) == left_by_honker
    assert shared.rows("SELECT * FROM _honker_dead") == []
    assert shared.rows("SELECT * FROM alkstore_attempts") == []


def test_somebody_left_what_is_no_json_and_our_worker_that_was_not_told_the_queue_changes_nothing(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    for payload in NO_JSON:
        insert(shared, payload)
    before = every_byte(shared)
    we_run_the_tasks_of(shared, their_default)
    assert every_byte(shared) == before
    assert shared.rows("SELECT * FROM _honker_dead") == []


def test_somebody_left_what_is_no_json_and_our_worker_that_was_told_the_queue_buries_it_as_it_is(
    shared: SharedFile, their_default: HonkerQueue, left_by_honker: dict[int, list[str]]
) -> None:
    for payload in NO_JSON:
        insert(shared, payload)
    payloads = [row[2] for row in every_byte(shared).values()][len(left_by_honker) :]
    we_run_the_tasks_of(shared, their_default, "--queue=default")
    assert every_byte(shared) == left_by_honker
    assert [row[2] for row in every_byte(shared, "_honker_dead").values()] == payloads
    errors = shared.rows("SELECT last_error FROM _honker_dead")
    assert ["the payload is not JSON text" in row["last_error"] for row in errors] == [True] * len(NO_JSON)


def test_somebody_left_broken_tasks_and_our_worker_buries_them_as_they_are(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    for payload in NO_ENVELOPE:
        insert(shared, payload)
    payloads = [row[2] for row in every_byte(shared).values()]
    we_run_the_tasks_of(shared, their_default)
    assert every_byte(shared) == {}
    assert [row[2] for row in every_byte(shared, "_honker_dead").values()] == payloads
    assert len(shared.rows("SELECT id FROM alkstore_attempts")) == len(NO_ENVELOPE)


def test_somebody_left_names_that_are_no_text_and_our_commands_show_them(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    insert(shared, "'1'", "CAST(x'61ff' AS TEXT)")
    insert(shared, "'1'", "' a\n'")
    before = every_byte(shared)
    we_run_the_tasks_of(shared, their_default)
    assert every_byte(shared) == before
    status = json.loads(shared.manage("alkstatus", "--json"))
    assert {each["queue"]: each["ready"] for each in status} == {" a\n": 1, "a\\xff": 1}
    seen = queues.get_job(min(before))
    assert seen is not None
    assert (seen.queue, seen.state) == ("a\\xff", "pending")


def test_honker_left_nan_and_our_queue_claims_it_when_it_is_asked_to(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    its = their_default.enqueue({"x": math.nan})
    default = Queue("default")
    job = default.claim_one("us")
    assert job is not None
    assert math.isnan(job.payload["x"])
    assert default.fail(job, "no number")
    assert shared.rows("SELECT id, payload FROM _honker_dead") == [{"id": its, "payload": '{"x": NaN}'}]


def test_somebody_left_what_is_no_json_and_our_queue_buries_it_when_it_is_asked_to_claim(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    for payload in NO_JSON:
        insert(shared, payload)
    payloads = [row[2] for row in every_byte(shared).values()]
    good = their_default.enqueue("good")
    jobs = Queue("default").claim_batch("us", 10)
    assert [(job.id, job.payload) for job in jobs] == [(good, "good")]
    assert [row[2] for row in every_byte(shared, "_honker_dead").values()] == payloads
