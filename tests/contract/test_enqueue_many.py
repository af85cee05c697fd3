from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql import tables
from tests.factories import columns

pytestmark = pytest.mark.django_db


def test_ids_come_in_the_order_of_the_payloads(queue: Queue) -> None:
    ids = queue.enqueue_many({"number": number} for number in range(2_500))
    assert ids == sorted(set(ids))
    stored = Job.objects.filter(queue=queue.name).order_by("id").values_list("id", "payload")
    assert list(stored) == [(job_id, f'{{"number":{number}}}') for number, job_id in enumerate(ids)]


def test_nothing(queue: Queue) -> None:
    assert queue.enqueue_many([]) == []


def test_options_hold_for_all(queue: Queue) -> None:
    ids = queue.enqueue_many([1, 2], run_at=1_000, priority=3, expires=60, max_attempts=1)
    for job_id in ids:
        run_at, priority, expires_at, created_at, max_attempts = columns(
            job_id, "run_at", "priority", "expires_at", "created_at", "max_attempts"
        )
        assert (run_at, priority, max_attempts) == (1_000, 3, 1)
        assert 60 <= expires_at - created_at <= 61


@pytest.mark.parametrize("bad", [float("nan"), {1}, {1: 1, "1": 2}])
def test_one_bad_payload_keeps_all_out(queue: Queue, bad: Any) -> None:
    with transaction.atomic():
        with pytest.raises((TypeError, ValueError), match=r"payloads\[2\]"):
            queue.enqueue_many([1, 2, bad, 3])
        assert queue.enqueue("still usable")
    assert Job.objects.filter(queue=queue.name).count() == 1


def test_an_iterator_is_read_while_it_is_written(queue: Queue) -> None:
    read: list[int] = []

    def payloads(count: int, last: Any) -> Iterator[Any]:
        for number in range(count):
            if number % 500 == 250:
                read.append(Job.objects.filter(queue=queue.name).count())
            yield number
        yield last

    ids = queue.enqueue_many(payloads(2_500, "last"))
    assert (len(ids), read) == (2_501, [0, 0, 1_000, 1_000, 2_000])
    with transaction.atomic():
        with pytest.raises(ValueError, match=r"payloads\[1500\] is nan"):
            queue.enqueue_many(payloads(1_500, float("nan")))
        assert queue.enqueue("still usable") > ids[-1]
    with pytest.raises(ZeroDivisionError):
        queue.enqueue_many(1 / (1_500 - number) for number in range(2_000))
    assert Job.objects.filter(queue=queue.name).count() == 2_502
    with pytest.raises(ValueError, match="priority"):
        queue.enqueue_many(payloads(1, "not read"), priority=0.5)
    assert len(read) == 5 + 3


def test_all_or_none(queue: Queue) -> None:
    """The second of two statements fails: the first one is undone, too."""

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(f"INSERT INTO {tables.LIVE}"):
            statements.append(sql)
            if len(statements) == 2:
                raise ZeroDivisionError
        return execute(sql, *rest)

    statements: list[str] = []
    with pytest.raises(ZeroDivisionError), connection.execute_wrapper(failing):
        queue.enqueue_many(range(1_500))
    assert len(statements) == 2
    assert not Job.objects.filter(queue=queue.name).exists()


def test_more_than_one_packet(queue: Queue) -> None:
    """MariaDB takes 16 MB in a statement."""
    ids = queue.enqueue_many(["x" * 40_000] * 500)
    assert ids == sorted(set(ids))
    assert Job.objects.filter(queue=queue.name).count() == 500


def test_it_takes_few_statements(queue: Queue, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(8):
        queue.enqueue_many(range(3_000))
