"""Receivers of the host project: a sender-less one turns ``QuerySet.delete()`` into a DELETE by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save

from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, change, where

pytestmark = pytest.mark.django_db

SIGNALS = (pre_delete, post_delete, pre_save, post_save)


@pytest.fixture(autouse=True)
def heard() -> Iterator[list[Any]]:
    """What receivers without a sender hear of the tables of the mirror."""
    seen: list[Any] = []

    def receive(sender: Any, **kwargs: Any) -> None:
        if sender._meta.db_table.startswith("_honker"):
            seen.append(sender)

    for signal in SIGNALS:
        signal.connect(receive)
    yield seen
    for signal in SIGNALS:
        signal.disconnect(receive)


def test_the_fences_hold(queue: Queue, heard: list[Any]) -> None:
    queue.enqueue_many(range(6))
    jobs = queue.claim_batch("w", 6)
    for job in jobs:
        change(job.id, worker_id="another")
    assert not queue.ack(jobs[0])
    assert queue.ack_batch(jobs) == 0
    assert not queue.fail(jobs[1], "no")
    assert [where(job.id) for job in jobs] == ["live"] * 6
    for job in jobs:
        change(job.id, worker_id="w")
    assert queue.ack(jobs[0])
    assert queue.ack_batch(jobs) == 5
    assert heard == []


def test_no_move_goes_through_the_orm(queue: Queue, heard: list[Any]) -> None:
    first, second = queue.enqueue(1), queue.enqueue(2, expires=0)
    job = queue.claim_one("w")
    assert job is not None
    assert queue.fail(job, "no")
    assert queue.requeue([first]) == 1
    assert queue.sweep_expired() == 1
    assert queue.cancel(first)
    factories.claimed(queue.name, claim_expires_at=at(-1), attempts=3)
    heard.clear()
    assert queue.claim_one("w") is None
    assert where(second) == "dead"
    assert heard == []
