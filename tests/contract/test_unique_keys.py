"""What keys cost, and how they are tidied away."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alkstore_django import queues, sweeps
from alkstore_django.models import Job, Run, UniqueKey
from alkstore_django.sql import get_dialect, tables
from alkstore_django.testing import drain
from alkstore_django.turns import Verdict
from tests import factories
from tests.contract.retaining import prune
from tests.contract.stages import claim, failure, settle
from tests.contract.uniques import is_free, unique
from tests.factories import ask, at

pytestmark = pytest.mark.django_db


def sweep() -> int:
    """Delete keys that are of no use; how many."""
    deleted, last = 0, ""
    while True:
        last, more = sweeps.sweep_keys("default", last)
        deleted += more
        if not last:
            return deleted


def touching(captured: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in captured if tables.UNIQUE_KEYS in query["sql"]]


def test_other_tasks_pay_nothing() -> None:
    task = unique(False)
    with CaptureQueriesContext(connection) as captured:
        result = task.enqueue(1)
        task.enqueue_many([(2,), (3,)])
        settle(claim(result), Verdict.ACK)
        settle(claim(result), Verdict.DEAD, failure=failure())
        assert task.get_result(result.id).created
        assert queues.cancel(Job.objects.get().pk)
    assert touching(captured) == []
    assert not UniqueKey.objects.exists()


def test_the_end_of_a_unique_job_costs_nothing_either() -> None:
    task = unique()
    results = task.enqueue_many([(1,), (2,), (3,)])
    with CaptureQueriesContext(connection) as captured:
        settle(claim(results[0]), Verdict.ACK)
        settle(claim(results[1]), Verdict.DEAD, failure=failure())
        assert results[2].cancel()
    assert touching(captured) == []


def test_a_held_key_is_one_read() -> None:
    task = unique()
    task.enqueue(1)
    with CaptureQueriesContext(connection) as captured:
        task.enqueue(1)
    assert [sql for sql in touching(captured) if not sql.startswith("SELECT")] == []


def test_keys_without_a_job_are_swept() -> None:
    task = unique()
    results = task.enqueue_many([(number,) for number in range(1_200)])
    assert sweep() == 0
    ask(f"DELETE FROM {tables.LIVE} WHERE id > %s", [int(results[99].id)])
    assert sweep() == 1_100
    assert UniqueKey.objects.count() == 100
    assert not any(result.created for result in task.enqueue_many([(number,) for number in range(100)]))


def test_keys_of_running_jobs_and_such_whose_time_is_not_over_stay() -> None:
    queued, timed = unique(unique_for="queued"), unique(unique_for=60)
    running, done, over = queued.enqueue(1), timed.enqueue(2), timed.enqueue(3)
    claim(running)
    for result in (done, over):
        settle(claim(result), Verdict.ACK)
    UniqueKey.objects.filter(job_id=over.id).update(holds_until=at(0))
    assert sweep() == 1
    assert {str(key.job_id) for key in UniqueKey.objects.all()} == {running.id, done.id}


def test_a_key_that_was_taken_since_it_was_seen_is_not_swept() -> None:
    task = unique()
    result = task.enqueue(1)
    assert result.cancel()
    _, orphans = UniqueKey.objects.orphans("", 10)
    assert list(orphans) == [UniqueKey.objects.get().digest]
    again = task.enqueue(1)
    assert UniqueKey.objects.forget(orphans) == 0
    assert not is_free(task, again)


def test_they_are_swept() -> None:
    results = unique().enqueue_many([(number,) for number in range(700)])
    assert results[0].cancel() and results[600].cancel()
    ask(f"DELETE FROM {tables.LIVE} WHERE id > %s", [int(results[-10].id)])
    assert prune("keys") == {"keys": 11}
    assert UniqueKey.objects.count() == 700 - 2 - 9


def test_the_worker_keeps_the_record_of_a_job_whose_key_is_held_for_longer() -> None:
    def scenario() -> None:
        for lasting, kept_for in ((600, 600), ("finished", 60)):
            task = unique(factories.queue().name, result_ttl=60, unique_for=lasting)
            result = task.enqueue(kept_for)
            (ran,) = drain(queue=task.queue_name)
            assert (ran.job_id, ran.value) == (int(result.id), kept_for)
            run = Run.objects.get(pk=result.id)
            assert run.expires_at == run.finished_at + kept_for
            assert is_free(task, result) == (kept_for == 60)

    factories.within_a_second(scenario)


def plan(statement: str, params: dict[str, object]) -> str:
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    return "\n".join(str(row) for row in ask(f"{explain} {statement}", params))


def test_looking_at_keys_reads_no_table_as_a_whole() -> None:
    unique().enqueue_many([(number,) for number in range(1_000)])
    dialect = get_dialect(connection)
    for statement in (dialect.key_holders("%(digest)s"), dialect.look_at_keys):
        text = plan(statement, {"digest": "a", "after": "a", "n": 10})
        assert not re.search(r"Seq Scan|SCAN (held|job)|'ALL'", text), text
