from __future__ import annotations

import pytest

from alkstore_django import status
from alkstore_django.queues import Queue
from alkstore_django.status import QueueStatus
from tests import factories
from tests.factories import at, claimed, live, within_a_second

pytestmark = pytest.mark.django_db


def of(queue: Queue) -> QueueStatus:
    return next(each for each in status.queues("default") if each.queue == queue.name)


def test_nothing() -> None:
    assert status.queues("default") == []


def test_each_state_is_counted() -> None:
    def scenario() -> None:
        queue = factories.queue()
        for age in (5, 90, 0):
            live(queue.name, run_at=at(-age))
        for _ in range(2):
            live(queue.name, run_at=at(1))
        claimed(queue.name, run_at=at(-500))
        factories.dead(next(ids), queue.name)
        assert of(queue) == QueueStatus(queue.name, ready=3, delayed=2, running=1, dead=1, oldest_due=90)

    within_a_second(scenario)


ids = iter(range(2**40, 2**41))


def test_a_queue_of_dead_letters_only(queue: Queue) -> None:
    factories.dead(next(ids), queue.name)
    assert of(queue) == QueueStatus(queue.name, dead=1)


def test_a_queue_without_anything_due(queue: Queue) -> None:
    queue.enqueue(1, delay=60)
    assert of(queue).oldest_due is None


def test_by_name() -> None:
    for name in ("b", "B", "a", "ä"):
        Queue(name).enqueue(1)
    assert [each.queue for each in status.queues("default")] == ["B", "a", "b", "ä"]


def test_names_and_times_of_other_programs() -> None:
    live("", run_at=-(10**15))
    live("epoch", run_at=0)
    live("x" * 191, run_at=10**15)
    found = {each.queue: each for each in status.queues("default")}
    assert found[""].oldest_due is not None
    assert found[""].oldest_due > 10**15
    assert (found["epoch"].oldest_due or 0) > 10**9
    assert found["x" * 191].delayed == 1
