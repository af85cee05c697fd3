"""The queues that there are, found without reading their rows."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from alkstore_django import turns
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from tests.factories import ask, claimed, live

pytestmark = pytest.mark.django_db


def test_every_queue_with_a_live_job_once() -> None:
    assert turns.queues("default") == []
    for name in ("mail", "Mail", "orders", "a,b", "odd*", "über", "z" * 191):
        for _ in range(3):
            live(name)
    claimed("running only")
    claimed("mail")
    live("later", run_at=2**33)
    found = turns.queues("default")
    assert found == sorted(
        ["mail", "Mail", "orders", "a,b", "odd*", "über", "z" * 191, "running only", "later"]
    )


@pytest.mark.only("sqlite")
def test_names_that_are_no_text() -> None:
    for name in ("CAST(x'ff41' AS TEXT)", "x'41'", "7"):
        ask(f"INSERT INTO _honker_live (queue, payload) VALUES ({name}, '1')")
    live("mail")
    assert turns.queues("default") == ["7", "A", "\\xffA", "mail"]


def test_whether_a_queue_holds_a_task() -> None:
    for number in range(3):
        live("raw", f'{{"to": {number}}}')
    live("mixed", "1", priority=9)
    live("mixed", '{"__honker_task__": {}}')
    claimed("running", '{"__honker_task__": {}}')
    live("later", '{"__honker_task__": {}}', run_at=2**33)
    found = {name: turns.has_task("default", name) for name in ("raw", "mixed", "running", "later", "none")}
    assert found == {"raw": False, "mixed": True, "running": True, "later": True, "none": False}


def reads() -> int:
    """Rows of the table that this session has read, by the server's own count."""
    if connection.vendor == "mysql":
        rows = ask("SHOW SESSION STATUS LIKE 'Handler_read%%'", {})
        return sum(int(value) for _, value in rows)
    return 0


@pytest.fixture
def backlog() -> None:
    for name in ("a", "b", "c"):
        Queue(name).enqueue_many(range(1000))
        Queue(name).enqueue_many(range(100), priority=5)
    ids = list(Job.objects.values_list("pk", flat=True)[:200])
    Job.objects.filter(pk__in=ids).update(state=Job.PROCESSING, worker_id="w", claim_expires_at=2**33)


@pytest.mark.only("mysql")
@pytest.mark.usefixtures("backlog")
def test_mariadb_seeks() -> None:
    before = reads()
    assert turns.queues("default") == ["a", "b", "c"]
    assert reads() - before < 60


@pytest.mark.only("sqlite")
@pytest.mark.usefixtures("backlog")
def test_sqlite_seeks() -> None:
    steps = [row[3] for row in ask(f"EXPLAIN QUERY PLAN {get_dialect(connection).queues}")]
    assert [step for step in steps if "SEARCH _honker_live" in step and "queue>?" in step], steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps


def loops(plan: Any) -> int:
    """Rows that the scans of a PostgreSQL plan have read in all."""
    own = plan["Actual Rows"] * plan["Actual Loops"] if plan.get("Relation Name") else 0
    return int(own) + sum(loops(child) for child in plan.get("Plans", []))


@pytest.mark.only("postgresql")
@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize("statistics", [False, True])
def test_postgresql_seeks(statistics: bool) -> None:
    if statistics:
        ask("ANALYZE _honker_live")
    ((plan,),) = ask(f"EXPLAIN (ANALYZE, FORMAT JSON) {get_dialect(connection).queues}")
    assert loops(plan[0]["Plan"]) < 20
