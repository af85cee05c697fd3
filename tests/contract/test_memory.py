"""What is done to many rows is done in batches: the memory that it takes does not grow with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alkstore_django.models import DeadJob, Job
from alkstore_django.queues import Queue
from tests import factories

pytestmark = pytest.mark.django_db

JOBS = 16_000
LENGTH = 1_500
"""Characters of a payload: all of them together are 24 MB."""

ENOUGH = 12_000_000
"""Bytes: a batch in its several forms, and the ids."""


def peak(call: Callable[[], Any]) -> int:
    """The most memory, in bytes, that Python's objects took meanwhile."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_enqueue_and_sweep(queue: Queue) -> None:
    payloads = ("x" * LENGTH for _ in range(JOBS))
    assert peak(lambda: queue.enqueue_many(payloads, expires=0)) < ENOUGH
    assert Job.objects.filter(queue=queue.name).count() == JOBS
    assert peak(queue.sweep_expired) < ENOUGH
    assert DeadJob.objects.filter(queue=queue.name).count() == JOBS


def test_requeue(queue: Queue) -> None:
    """Ids are asked for as they are needed: those of the next batch when one is committed."""
    first = queue.enqueue(1) + 1_000
    letters = [factories.dead(first + number, queue.name) for number in range(250)]
    requeued: list[int] = []

    def ids() -> Iterator[int]:
        for job_id in letters:
            requeued.append(Job.objects.filter(pk__in=letters).count())
            yield job_id

    assert queue.requeue(ids()) == 250
    assert sorted(set(requeued)) == [0, 100, 200]
