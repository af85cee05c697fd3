"""What an enqueue answers is the row's, however quickly somebody is done with the job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from alkstore_django.sql.tables import LIVE
from tests.app import outboxes, tasks
from tests.factories import another_session, columns

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["as it is", "without RETURNING"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """MySQL has no RETURNING. What is done there works wherever the driver knows the last row id."""
    if request.param == "without RETURNING" and connection.vendor != "postgresql":
        kind = type(get_dialect(connection))
        monkeypatch.setattr(kind, "returns_inserted", False)
        monkeypatch.setattr(kind, "tells_last_id", True)


@contextmanager
def workers_without_delay() -> Iterator[None]:
    """What is committed is done with before the next statement."""

    def work(execute: Any, sql: str, *rest: Any) -> Any:
        if not connection.in_atomic_block:
            with another_session() as cursor:
                cursor.execute(f"DELETE FROM {LIVE}")
        return execute(sql, *rest)

    with connection.execute_wrapper(work):
        yield
    assert not connection.in_atomic_block


def test_a_job_may_be_done_before_its_enqueue_is() -> None:
    with workers_without_delay():
        first = Queue("default").enqueue(1)
        second, third = Queue("default").enqueue_many([2, 3])
        task = tasks.add.enqueue(1, 2)
        event = outboxes.write.enqueue({})
    assert [first, second, third] == sorted({first, second, third})
    assert int(task.id) > third and task.enqueued_at is not None
    assert event


def test_its_moment_is_that_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock of the program says: tests stop it, and machines of others are late."""
    monkeypatch.setattr(time, "time", lambda: 86_400.0)
    task = tasks.add.enqueue(1, 2)
    assert columns(int(task.id), "created_at") == (task.enqueued_at.timestamp(),)
