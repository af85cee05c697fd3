"""Projects that ask for REPEATABLE READ or SERIALIZABLE: what we open ourselves runs at READ COMMITTED."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from alkstore_django import schedules
from alkstore_django.models import Job
from alkstore_django.models.base import in_transaction
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.contract.test_races import together
from tests.factories import ask

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql", "mysql")]


@pytest.fixture(autouse=True)
def isolated() -> Iterator[None]:
    """The connection of a project with SERIALIZABLE in its OPTIONS."""
    theirs = connections["default"]
    level: Any = "serializable"
    if connection.vendor == "postgresql":
        from psycopg import IsolationLevel

        level = IsolationLevel.SERIALIZABLE
    options = {**theirs.settings_dict["OPTIONS"], "isolation_level": level}
    connections["default"] = type(theirs)({**theirs.settings_dict, "OPTIONS": options}, "default")
    yield
    connections["default"].close()
    connections["default"] = theirs


def level() -> str:
    """The isolation of the present transaction."""
    if connection.vendor == "postgresql":
        return str(ask("SHOW transaction_isolation")[0][0])
    Job.objects.select_for_update().count()  # or there is no transaction yet
    time.sleep(0.15)  # the table is written anew when it was not read for 0.1 s
    sql = "SELECT trx_isolation_level FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = {}"
    return str(ask(sql.format("CONNECTION_ID()"))[0][0]).lower()


def test_that_of_the_caller_is_left_alone(queue: Queue) -> None:
    with transaction.atomic():
        assert level() == "serializable"
    with transaction.atomic():
        queue.enqueue_many([1])
        assert in_transaction("default", level) == "serializable"


def test_our_own_transaction(queue: Queue) -> None:
    levels: list[str] = []

    def work() -> None:
        levels.append(level())
        if len(levels) == 1:
            error = OperationalError()
            error.__cause__ = type("DriverError", (Exception,), {"sqlstate": "40001"})(1213)
            raise error

    in_transaction("default", work)
    first = {"postgresql": "serializable", "mysql": "read committed"}[connection.vendor]
    assert levels == [first, "read committed"]
    with transaction.atomic():
        assert level() == "serializable"


def test_what_cannot_be_run_again(queue: Queue) -> None:
    levels: list[str] = []

    def payloads() -> Iterator[int]:
        levels.append(level())
        yield 1

    queue.enqueue_many(payloads())
    assert levels == ["read committed"]
    with transaction.atomic():
        queue.enqueue_many(payloads())
    assert levels == ["read committed", "serializable"]
    assert Job.objects.filter(queue=queue.name).count() == 2


def test_every_operation_works(queue: Queue) -> None:
    ids = [queue.enqueue(1), *queue.enqueue_many([2, 3, 4])]
    first, second, third, fourth = queue.claim_batch("w", 4)
    assert queue.ack(first)
    assert queue.retry(second)
    assert queue.fail(third)
    assert queue.release(fourth)
    assert queue.requeue([ids[2]]) == 1
    assert queue.cancel(ids[3])
    assert queue.ack_batch(queue.claim_batch("w", 9)) == 2
    assert (queue.sweep_expired(), queue.sweep_exhausted(), queue.next_claim_at()) == (0, 0, 0)


@pytest.mark.only("mysql")  # PostgreSQL refuses to change what the caller has seen otherwise
def test_what_others_have_changed_since_the_caller_began_is_kept(queue: Queue) -> None:
    schedules.register("s", "30 2 * * *", tasks.nothing, timezone="UTC")
    ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    if ask("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
        ask("SET SESSION innodb_snapshot_isolation = OFF")  # or it refuses, too
    with transaction.atomic():
        assert [each.priority for each in schedules.list()] == [0]
        together(lambda: schedules.update("s", expression="1 1 * * *", priority=3))
        schedules.update("s", priority=0)
        schedules.update("s", overlap=False)
    (found,) = schedules.list()
    assert (found.expression, found.priority, found.overlap) == ("1 1 * * *", 0, False)
