"""On PostgreSQL a turn is two prepared statements in one round trip."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import turns
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from alkstore_django.turns import Outcome, Renewal, Turn, Verdict
from tests.contract.clerk import claims, settle, wish
from tests.factories import ask, where

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]


@pytest.fixture
def pooled() -> Iterator[None]:
    """As behind PgBouncer in transaction mode."""
    given = connection.settings_dict
    before = given.get("DISABLE_SERVER_SIDE_CURSORS", False)
    given["DISABLE_SERVER_SIDE_CURSORS"] = True
    yield
    given["DISABLE_SERVER_SIDE_CURSORS"] = before


def prepared() -> int:
    return int(ask("SELECT count(*) FROM pg_prepared_statements")[0][0])


def a_turn(queue: Queue, n: int) -> Turn:
    """Every sort of entry, and a claim of ``n``."""
    acked, given_back, renewed = claims(queue, 3)
    queue.enqueue_many(range(n))
    outcomes = [Outcome(acked, Verdict.ACK, value="1", ttl=n), Outcome(given_back, Verdict.GIVE_BACK)]
    turn = turns.take("default", "w", outcomes, [wish(queue, n)], n, [Renewal(renewed, 100 * n)])
    assert where(acked.id) == "run"
    assert len(turn.claims) == n
    return turn


def test_the_statements_are_prepared_once(queue: Queue) -> None:
    connection.close()
    a_turn(queue, 5)
    assert prepared() == 3
    with CaptureQueriesContext(connection) as captured:
        for n in (1, 40, 300):
            a_turn(queue, n)
    assert prepared() == 3
    assert not [query for query in captured if "UPDATE _honker_live" in query["sql"]]


def test_it_leaves_the_session_as_it_was(queue: Queue) -> None:
    a_turn(queue, 1)
    names = ("enable_sort", "enable_seqscan", "plan_cache_mode")
    assert [ask(f"SHOW {name}")[0][0] for name in names] == ["on", "on", "auto"]
    assert connection.connection.prepare_threshold is None
    assert connection.get_autocommit()


@pytest.mark.usefixtures("pooled")
def test_nothing_is_prepared_behind_a_pooler(queue: Queue) -> None:
    connection.close()
    with CaptureQueriesContext(connection) as captured:
        a_turn(queue, 5)
    assert prepared() == 0
    assert [query["sql"] for query in captured].count("BEGIN") >= 2


def test_in_a_transaction_of_the_caller_it_is_part_of_it(queue: Queue) -> None:
    (claim,) = claims(queue, 1)
    with transaction.atomic():
        assert settle(Outcome(claim, Verdict.ACK)) == []
        assert where(claim.id) == "run"
        transaction.set_rollback(True)
    assert where(claim.id) == "live"


def test_all_or_nothing(queue: Queue) -> None:
    """What the database refuses at the end undoes what came before it; then each is settled alone."""
    good, bad = claims(queue, 2)
    queue.enqueue(1)
    outcomes = [Outcome(good, Verdict.ACK), Outcome(bad, Verdict.ACK, ttl=2**63 - 1)]
    assert turns.take("default", "w", outcomes, [wish(queue)], 5) == Turn()
    assert (where(good.id), where(bad.id)) == ("run", "dead")
    assert len(turns.take("default", "w", [], [wish(queue)], 5).claims) == 1


@pytest.mark.parametrize("statistics", [False, True])
def test_the_plans_hold_for_a_table_of_any_size(queue: Queue, statistics: bool) -> None:
    """Made without rows or with them, they are the same: a prepared one serves for long."""
    empty = plans()
    for priority in (0, 5):
        queue.enqueue_many(range(2_000), priority=priority)
    claims(queue, 500)
    if statistics:
        ask("ANALYZE _honker_live")
    for settling, granting in (empty, plans()):
        used = set(re.findall(r"Index Scan (?:using|on) (\w+)", settling))
        assert used == {"_honker_live_pkey"}, settling
        assert "Index Scan using alkstore_live_claim" in granting
        assert "run_at <=" in next(line for line in granting.splitlines() if "priority = level" in line)
        assert not re.search(r"Seq Scan|Sort", settling + granting)


def plans() -> tuple[str, str]:
    """How the two statements are run, with whatever parameters."""
    dialect = get_dialect(connection)
    types = {"entries": "text", "wishes": "text", "worker_id": "text", "room": "bigint"}
    with transaction.atomic():
        ask(dialect.turn_opening)
        found = []
        for number, text in enumerate((dialect.settle, dialect.grant)):
            names = [name for name in types if f"%({name})s" in text]
            numbered = text % {name: f"${place}" for place, name in enumerate(names, 1)}
            ask(f"PREPARE plan_{number} ({', '.join(types[name] for name in names)}) AS {numbered}")
            values = {"entries": "'[]'", "wishes": "'[]'", "worker_id": "'w'", "room": "9"}
            arguments = ", ".join(values[name] for name in names)
            rows = ask(f"EXPLAIN (COSTS OFF) EXECUTE plan_{number} ({arguments})")
            found.append("\n".join(row[0] for row in rows))
            ask(f"DEALLOCATE plan_{number}")
    return found[0], found[1]
