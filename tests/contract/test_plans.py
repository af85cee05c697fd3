"""The statements of the hot path go through the indexes that they are written for."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from tests.factories import ask, at

pytestmark = pytest.mark.django_db

PARAMS = {"queue": "q", "worker_id": "w", "n": 10, "visibility": 60, "priority": 0, "ceiling": 2**63, "id": 1}
PARAMS |= {"q0": "q", "q1": "another"}


@pytest.fixture
def backlog() -> None:
    """Rows enough for an index to pay: due, delayed, running, of several priorities and queues."""
    for name in ("q", "another"):
        for priority in (0, 5):
            Queue(name).enqueue_many(range(300), priority=priority)
        Queue(name).enqueue_many(range(300), priority=9, delay=1000)
    running = {"state": Job.PROCESSING, "worker_id": "w", "attempts": 1}
    Job.objects.bulk_create(
        Job(
            queue="q",
            payload="1",
            claim_expires_at=at(60),
            run_at=at(0),
            created_at=at(0),
            max_attempts=3,
            **running,
        )
        for _ in range(300)
    )


def statement(name: str, *arguments: Any) -> str:
    value = getattr(get_dialect(connection), name)
    return str(value(*arguments) if callable(value) else value)


def sqlite_plan(name: str, *arguments: Any) -> list[str]:
    return [row[3] for row in ask(f"EXPLAIN QUERY PLAN {statement(name, *arguments)}", PARAMS)]


@pytest.mark.only("sqlite")
@pytest.mark.parametrize(
    ("name", "arguments", "index"),
    [
        ("claim_pending", [False], "_honker_live_claim (queue=? AND priority=? AND run_at<?)"),
        ("claim_pending", [True], "_honker_live_claim (queue=? AND priority=? AND run_at<?)"),
        ("claim_pending", [False], "_honker_live_pending_deadline (queue=? AND run_at<?)"),
        ("claim_pending", [True], "_honker_live_pending_deadline (queue=? AND run_at<?)"),
        ("lapsed_claims", [False], "_honker_live_processing_deadline (queue=? AND claim_expires_at<?)"),
        ("lapsed_claims", [True], "_honker_live_processing_deadline (queue=? AND claim_expires_at<?)"),
        ("any_lapsed", [False], "_honker_live_processing_deadline (queue=? AND claim_expires_at<?)"),
        ("look", [[True]], "_honker_live_pending_deadline (queue=?)"),
        ("look", [[True]], "_honker_live_processing_deadline (queue=? AND claim_expires_at>?)"),
        ("next_claim_at", [], "_honker_live_pending_deadline (queue=? AND run_at>?)"),
        ("next_claim_at", [], "_honker_live_processing_deadline (queue=? AND claim_expires_at>?)"),
        ("held_by", [], "_honker_live_processing_deadline (queue=? AND claim_expires_at>?)"),
        ("ack", [], "INTEGER PRIMARY KEY (rowid=?)"),
        ("lock_live", [], "INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_sqlite(name: str, arguments: list[Any], index: str) -> None:
    params = {**PARAMS, "attempts": 1}
    plan = [row[3] for row in ask(f"EXPLAIN QUERY PLAN {statement(name, *arguments)}", params)]
    assert any(step.endswith(index) and step.startswith("SEARCH") for step in plan), plan
    assert not [step for step in plan if "TEMP B-TREE" in step or "AUTOMATIC" in step], plan
    assert not [step for step in plan if step.startswith("SCAN _honker")], plan


@pytest.mark.only("sqlite")
@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize("name", ["claim_pending", "lapsed_claims"])
def test_sqlite_with_statistics_of_a_big_table(name: str) -> None:
    before = sqlite_plan(name, True)
    ask("ANALYZE")
    after = sqlite_plan(name, True)
    assert not [step for step in after if "TEMP B-TREE" in step or step.startswith("SCAN _honker")], after
    assert [step for step in after if "INDEX" in step] == [step for step in before if "INDEX" in step]


def postgresql_plan(name: str, *arguments: Any) -> str:
    """As in a transaction of our own, which begins with ``opening``."""
    ask(str(get_dialect(connection).opening))
    return "\n".join(row[0] for row in ask(f"EXPLAIN {statement(name, *arguments)}", PARAMS))


@pytest.mark.only("postgresql")
@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize("tasks_only", [False, True])
@pytest.mark.parametrize("statistics", [False, True])
def test_postgresql_claims_through_the_index(tasks_only: bool, statistics: bool) -> None:
    if statistics:
        ask("ANALYZE _honker_live")
    plan = postgresql_plan("claim_pending", tasks_only)
    assert "Index Scan using alkstore_live_claim on _honker_live" in plan
    claim = next(line for line in plan.splitlines() if "Index Cond" in line and "run_at" in line)
    assert "priority = level" in claim
    assert "run_at <= $" in claim or "run_at <= (InitPlan" in claim
    # Where the table has few pages, the rows that were picked may be looked up by reading it all.
    assert not [line for line in plan.splitlines() if "Seq Scan on _honker_live _honker_live_" in line], plan
    assert "Sort" not in plan


@pytest.mark.only("postgresql")
@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize(
    ("name", "arguments", "index", "column"),
    [
        ("lapsed_claims", [True], "alkstore_live_deadline", "claim_expires_at <"),
        ("any_lapsed", [True], "alkstore_live_deadline", "claim_expires_at <"),
        ("any_lapsed", [False], "alkstore_live_deadline", "claim_expires_at <"),
        ("look", [[True, False]], "alkstore_live_due", "queue ="),
        ("look", [[True, False]], "alkstore_live_deadline", "claim_expires_at IS NOT NULL"),
        ("next_claim_at", [], "alkstore_live_due", "run_at >"),
        ("next_claim_at", [], "alkstore_live_deadline", "claim_expires_at >="),
        ("expired", [True], "alkstore_live_expiry", "expires_at <="),
    ],
)
def test_postgresql(name: str, arguments: list[Any], index: str, column: str) -> None:
    ask("ANALYZE _honker_live")
    plan = postgresql_plan(name, *arguments)
    assert index in plan
    assert any("Index Cond" in line and column in line for line in plan.splitlines()), plan
    assert "Seq Scan" not in plan


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_postgresql_own_transactions_begin_with_it(queue: Queue) -> None:
    queue.enqueue(1)
    with CaptureQueriesContext(connection) as captured:
        assert queue.claim_one("w") is not None
    assert captured[1]["sql"] == get_dialect(connection).opening
    for setting in ("enable_sort", "enable_incremental_sort"):
        assert setting in captured[1]["sql"]
        assert ask(f"SHOW {setting}") == [("on",)]
    with transaction.atomic(), CaptureQueriesContext(connection) as captured:
        assert queue.claim_one("w") is None
    assert not [
        query for query in captured if "enable_sort" in query["sql"]
    ]  # the rest of it is the caller's


def mariadb_plan(name: str, *arguments: Any) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement(name, *arguments)}", PARAMS)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.only("mysql")
@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize(
    ("name", "arguments", "index"),
    [
        ("next_priority", [], "alkstore_live_claim"),
        ("pick_pending", [False], "alkstore_live_claim"),
        ("pick_pending", [True], "alkstore_live_claim"),
        ("lapsed_claims", [True], "alkstore_live_deadline"),
        ("any_lapsed", [True], "alkstore_live_deadline"),
        ("look", [[True]], "alkstore_live_"),
        ("next_claim_at", [], "alkstore_live_"),
    ],
)
def test_mariadb(name: str, arguments: list[Any], index: str) -> None:
    plan = [step for step in mariadb_plan(name, *arguments) if step["table"] == "_honker_live"]
    assert plan
    for step in plan:
        assert step["key"].startswith(index), plan
        assert step["type"] in ("ref", "range"), plan
        assert "filesort" not in (step["Extra"] or ""), plan


@pytest.mark.only("mysql")
@pytest.mark.usefixtures("backlog")
def test_mariadb_reads_no_more_than_it_claims() -> None:
    def reads() -> int:
        return sum(int(value) for _, value in ask("SHOW SESSION STATUS LIKE 'Handler_read%%'", {}))

    before = reads()
    ask(statement("next_priority"), PARAMS)
    assert len(ask(statement("pick_pending", False), PARAMS | {"priority": 5, "n": 10})) == 10
    assert reads() - before < 60
