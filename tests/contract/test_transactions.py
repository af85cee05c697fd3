"""Enqueue is part of the caller's transaction: committed means queued, rolled back means never queued."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from alkstore_django.models import Job
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import where


@pytest.mark.django_db
def test_rolled_back(queue: Queue) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        User.objects.create(username="newcomer")
        queue.enqueue(1)
        queue.enqueue_many([2, 3])
        raise ZeroDivisionError
    assert not Job.objects.filter(queue=queue.name).exists()
    assert not User.objects.exists()


@pytest.mark.django_db
def test_a_savepoint_rolled_back(queue: Queue) -> None:
    with transaction.atomic():
        User.objects.create(username="newcomer")
        queue.enqueue("kept")
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            queue.enqueue("gone")
            raise ZeroDivisionError
        queue.enqueue("later")
    stored = Job.objects.filter(queue=queue.name).order_by("id").values_list("payload", flat=True)
    assert list(stored) == ['"kept"', '"later"']
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_every_move_can_be_rolled_back(queue: Queue) -> None:
    queue.enqueue_many(range(5))
    jobs = queue.claim_batch("w", 5)
    before = list(Job.objects.order_by("id").values())
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert queue.ack(jobs[0])
        assert queue.fail(jobs[1], "no")
        assert queue.retry(jobs[2], 5, "again")
        assert queue.release(jobs[3], started=True)
        assert queue.cancel(jobs[4].id)
        assert queue.requeue([jobs[1].id]) == 1
        raise ZeroDivisionError
    assert list(Job.objects.order_by("id").values()) == before
    assert [where(job.id) for job in jobs] == ["live"] * 5
    assert [factories.history(job.id) for job in jobs] == [[]] * 5
    assert queue.ack_batch(jobs) == 5


@pytest.mark.django_db
def test_from_a_signal_and_from_within_an_iterator(queue: Queue) -> None:
    User.objects.bulk_create(User(username=f"user {number}") for number in range(10))
    for user in User.objects.iterator(chunk_size=2):
        queue.enqueue(user.pk)
    assert Job.objects.filter(queue=queue.name).count() == 10


@pytest.fixture
def second() -> Iterator[object]:
    """A second connection to the same database."""
    other = connection.copy()
    yield other
    other.close()


def seen_by(other: object, queue: Queue) -> int:
    with other.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("SELECT COUNT(*) FROM _honker_live WHERE queue = %s", [queue.name])
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_others_see_it_from_the_commit_on(queue: Queue, second: object) -> None:
    with transaction.atomic(durable=True):
        queue.enqueue(1)
        queue.enqueue_many([2, 3])
        assert seen_by(second, queue) == 0
    assert seen_by(second, queue) == 3


@pytest.mark.django_db(transaction=True)
def test_the_first_use_of_a_queue_may_be_in_a_transaction(second: object) -> None:
    with transaction.atomic():
        queue = factories.queue()
        queue.enqueue(1)
    assert seen_by(second, queue) == 1


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_transaction_every_call_is_its_own(queue: Queue, second: object) -> None:
    queue.enqueue(1)
    assert seen_by(second, queue) == 1
    job = queue.claim_one("w")
    assert job is not None
    assert queue.fail(job, "no")
    assert seen_by(second, queue) == 0
    assert not connection.in_atomic_block
