"""On SQLite a turn is one statement."""

from __future__ import annotations

import re
import threading

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import turns
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from alkstore_django.turns import Outcome, Renewal, Verdict
from tests import factories
from tests.contract.clerk import NO, claims, settle, wish
from tests.factories import ask, history, where

pytestmark = [pytest.mark.django_db, pytest.mark.only("sqlite")]


def writes(captured: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in captured if not query["sql"].startswith(("SELECT", "CREATE TEMP"))]


@pytest.mark.django_db(transaction=True)
def test_settling_renewing_and_claiming_is_one_write(queue: Queue) -> None:
    other = factories.queue()
    acked, given_back, renewed = claims(queue, 3)
    queue.enqueue_many(range(3))
    other.enqueue_many(range(3))
    outcomes = [Outcome(acked, Verdict.ACK, value="1", ttl=60), Outcome(given_back, Verdict.GIVE_BACK)]
    with CaptureQueriesContext(connection) as captured:
        turn = turns.take("default", "w", outcomes, [wish(queue), wish(other)], 6, [Renewal(renewed, 300)])
    assert [sql.partition(" (")[0] for sql in writes(captured)] == ["INSERT INTO temp.alkstore_turn"]
    assert turn.lost == []
    assert [claim.queue for claim in turn.claims] == [queue.name] * 4 + [other.name] * 2
    assert where(acked.id) == "run"


@pytest.mark.django_db(transaction=True)
def test_failures_share_its_transaction(queue: Queue) -> None:
    acked, failed = claims(queue, 2)
    with CaptureQueriesContext(connection) as captured:
        assert settle(Outcome(acked, Verdict.ACK), Outcome(failed, Verdict.RETRY, failure=NO, delay=60)) == []
    begun = [sql for sql in writes(captured) if sql.startswith(("BEGIN", "COMMIT", "SAVEPOINT"))]
    assert begun == ["BEGIN IMMEDIATE", "COMMIT"]
    assert history(failed.id) == [("failed", 1, 1)]


@pytest.mark.django_db(transaction=True)
def test_a_new_connection_gets_its_own(queue: Queue) -> None:
    (first,) = claims(queue, 1)
    connection.close()
    assert settle(Outcome(first, Verdict.ACK)) == []
    connection.close()
    assert len(claims(queue, 3)) == 3


@pytest.mark.django_db(transaction=True)
def test_a_rollback_takes_it_away_and_it_comes_again(queue: Queue) -> None:
    connection.close()
    queue.enqueue(1)
    with transaction.atomic():
        assert len(turns.take("default", "w", [], [wish(queue)], 1).claims) == 1
        transaction.set_rollback(True)
    (claim,) = turns.take("default", "w", [], [wish(queue)], 1).claims
    assert claim.attempts == 1


@pytest.mark.django_db(transaction=True)
def test_temporary_tables_of_the_project_survive(queue: Queue) -> None:
    connection.close()
    assert len(claims(queue, 1)) == 1
    assert ask("PRAGMA temp_store") == [(2,)]
    connection.close()
    ask("CREATE TEMP TABLE theirs AS SELECT 1 AS one")
    assert len(claims(queue, 1)) == 1
    assert ask("SELECT one FROM theirs") == [(1,)]
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_threads_do_not_share_it(queue: Queue) -> None:
    queue.enqueue_many(range(20))
    found: list[int] = []

    def work() -> None:
        for _ in range(5):
            found.extend(claim.id for claim in turns.take("default", "w", [], [wish(queue)], 1).claims)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(Job.objects.filter(queue=queue.name).values_list("pk", flat=True))


def test_nothing_of_it_reaches_the_file(queue: Queue) -> None:
    claims(queue, 1)
    assert ask("SELECT count(*) FROM temp.sqlite_schema WHERE name LIKE 'alkstore_%%'", {}) == [(6,)]
    assert ask("SELECT name FROM main.sqlite_schema WHERE name IN ('alkstore_turn', 'alkstore_held')") == []


def statements() -> list[str]:
    """Those of the triggers, with parameters for what stands in NEW."""
    triggers = [text for text in get_dialect(connection).turn_objects if "TRIGGER" in text]
    bodies = [re.search(r"BEGIN (.*); END$", text) for text in triggers]
    return [
        re.sub(r"NEW\.(\w+)", r"%(\1)s", statement)
        for body in bodies
        if body is not None
        for statement in body[1].split("; ")
    ]


@pytest.mark.parametrize("statistics", [False, True])
def test_every_statement_goes_through_an_index(queue: Queue, statistics: bool) -> None:
    for priority in (0, 5):
        queue.enqueue_many(range(300), priority=priority)
    claims(queue, 100)
    if statistics:
        ask("ANALYZE")
    params = {"worker_id": "w", "entries": '[[1,1,"ack"]]', "wishes": "[]", "room": 9, "n": 9}
    params |= {"queue": queue.name, "visibility": 60, "tasks_only": False}
    plans = {text: [row[3] for row in ask(f"EXPLAIN QUERY PLAN {text}", params)] for text in statements()}
    assert len(plans) >= 11
    seen = [step for plan in plans.values() for step in plan]
    for index in ("claim (queue=? AND priority=? AND run_at<?)", "pending_deadline (queue=? AND run_at<?)"):
        assert any(step.endswith(f"_honker_live_{index}") for step in seen), seen
    for text, plan in plans.items():
        bad = [step for step in plan if re.search(r"SCAN (_honker|job\b)|TEMP B-TREE|AUTOMATIC", step)]
        assert not bad, (text, plan)
