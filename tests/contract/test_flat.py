"""What a claim costs does not grow with the rows that it leaves: counted by the database, not by a clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from alkstore_django import looks, turns
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from alkstore_django.turns import Wish
from tests import factories
from tests.factories import ask, at

pytestmark = pytest.mark.django_db

N = 10
MANY = 100_000


def due(queue: Queue, count: int = 1_000, priorities: int = 1) -> None:
    for priority in range(priorities):
        queue.enqueue_texts(("1" for _ in range(count // priorities)), priority=priority, run_at=1_000)


def many_due(queue: Queue) -> None:
    due(queue, MANY)


def many_priorities(queue: Queue) -> None:
    due(queue, MANY, priorities=50)


def many_future(queue: Queue) -> None:
    due(queue)
    queue.enqueue_texts(("1" for _ in range(MANY)), priority=5, delay=3_600)


def many_future_of_the_same_priority(queue: Queue) -> None:
    due(queue)
    queue.enqueue_texts(("1" for _ in range(MANY)), delay=3_600)


def many_in_flight(queue: Queue) -> None:
    due(queue)
    held = {"state": Job.PROCESSING, "worker_id": "x", "attempts": 1, "claim_expires_at": at(600)}
    rows = (Job(queue=queue.name, payload="1", run_at=1, max_attempts=3, **held) for _ in range(MANY // 10))
    Job.objects.bulk_create(rows, batch_size=500)


def many_of_another_queue(queue: Queue) -> None:
    due(queue)
    due(factories.queue(), MANY)


def reads(call: Callable[[], Any]) -> int:
    """How much the database did for it: steps of SQLite's machine, else rows and index entries read."""
    if connection.vendor == "sqlite":
        steps = itertools.count()
        connection.connection.set_progress_handler(lambda: next(steps) < 0, 1)
        try:
            call()
        finally:
            connection.connection.set_progress_handler(None, 0)
        return next(steps)
    before = _read()
    call()
    return _read() - before


def _read() -> int:
    if connection.vendor == "mysql":
        return sum(int(value) for _, value in ask("SHOW SESSION STATUS LIKE 'Handler_read%%'", {}))
    live = "'_honker_live'::regclass"
    relations = f"SELECT {live} AS oid UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = {live}"
    return int(ask(f"SELECT sum(pg_stat_get_xact_tuples_returned(oid)) FROM ({relations}) AS known")[0][0])


def claim(queue: Queue) -> None:
    assert len(queue.claim_batch("w", N)) == N


def turn(queue: Queue) -> None:
    """What a worker does: it looks, and then claims."""
    wish = Wish(queue.name, N, 60, tasks_only=False)
    assert looks.look("default", [wish]).due_in([wish]) <= 0
    assert not turns.has_lapsed("default", [wish])
    assert len(turns.take("default", "w", [], [wish], N).claims) == N


def analyze() -> None:
    ask(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}_honker_live")


@pytest.fixture(autouse=True)
def nothing_stays(db: None) -> Iterator[None]:
    """ANALYZE TABLE commits, on MySQL and MariaDB, what the test would else have rolled back."""
    yield
    if connection.vendor == "mysql":
        ask("TRUNCATE TABLE _honker_live")


@pytest.mark.parametrize("way", [claim, turn], ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    "rows",
    [
        many_due,
        many_priorities,
        many_future,
        many_future_of_the_same_priority,
        many_in_flight,
        many_of_another_queue,
    ],
    ids=lambda rows: rows.__name__,
)
def test_a_claim(rows: Callable[[Queue], None], way: Callable[[Queue], None]) -> None:
    if opening := get_dialect(connection).opening:  # as in a transaction of our own
        ask(opening)
    plain, crowded = factories.queue(), factories.queue()
    due(plain)
    rows(crowded)
    way(plain)  # the first time it also makes its temporary tables
    usual = reads(lambda: way(plain))
    assert usual > N
    for _ in range(2):
        assert reads(lambda: way(crowded)) < 2 * usual + 20
        analyze()


@pytest.mark.parametrize("rows", [many_due, many_future, many_in_flight], ids=lambda rows: rows.__name__)
def test_a_look(rows: Callable[[Queue], None]) -> None:
    """In the caller's transaction: there PostgreSQL may sort, and does so without statistics."""
    plain, crowded = factories.queue(), factories.queue()
    plain.enqueue(1, delay=5)
    rows(crowded)
    analyze()
    usual = reads(plain.next_claim_at)
    assert reads(crowded.next_claim_at) < 2 * usual + 20
