"""What an idle worker sees: something to do now, or how long it may sleep."""

from __future__ import annotations

import time
from math import inf
from typing import Any, NamedTuple

import pytest

from alkstore_django import looks
from alkstore_django.looks import Look
from alkstore_django.queues import Queue
from tests import factories
from tests.contract.clerk import wish
from tests.factories import at, claimed, live

pytestmark = pytest.mark.django_db


class Seen(NamedTuple):
    due_in: float
    lapses_in: float


def look(*queues: Queue, **options: Any) -> Seen:
    wishes = [wish(queue, **options) for queue in queues]
    found = looks.look("default", wishes)
    return Seen(found.due_in(wishes), found.lapses_in)


def test_nothing(queue: Queue) -> None:
    assert look(queue) == Seen(inf, inf)
    assert looks.look("default", []) == Look({}, inf)
    assert Look().due_in([]) == inf


@pytest.mark.parametrize(
    ("row", "least", "most"),
    [
        ({}, -1, 0),
        ({"run_at": at(0)}, -1, 0),
        ({"run_at": at(-50)}, -51, -50),
        ({"run_at": at(50)}, 47, 50),
        ({"run_at": at(50), "expires_at": at(60)}, 47, 50),
        ({"run_at": 40_000_000_000}, 10**10, inf),
    ],
    ids=str,
)
def test_a_waiting_job(queue: Queue, row: Any, least: float, most: float) -> None:
    """To a fraction of a second, by the database's clock; never too early."""
    live(queue.name, **row)
    found = look(queue)
    assert least - 2 <= found.due_in <= most
    assert found.lapses_in == inf


@pytest.mark.parametrize("row", [{"attempts": 3}, {"expires_at": at(0)}, {"expires_at": at(-9)}], ids=str)
def test_what_cannot_be_claimed_any_more(queue: Queue, row: Any) -> None:
    live(queue.name, **row)
    assert look(queue).due_in == inf


@pytest.mark.parametrize(
    ("claim_expires_at", "least", "most"),
    [(at(-9), -9, -8), (at(-1), -1, 0), (at(30), 28, 31), (None, inf, inf)],
)
def test_a_claim(queue: Queue, claim_expires_at: Any, least: float, most: float) -> None:
    """In the second in which it ends it still holds."""
    claimed(queue.name, claim_expires_at=None)
    claimed(queue.name, claim_expires_at=claim_expires_at)
    found = look(queue)
    assert least - 2 <= found.lapses_in <= most
    assert found.due_in == inf


def test_it_agrees_with_the_claim(queue: Queue) -> None:
    """A job is due from the very moment on in which the look says so."""
    live(queue.name, run_at=at(1))
    while (due_in := look(queue).due_in) > 0:
        assert due_in <= 1
        time.sleep(due_in)
    assert queue.claim_batch("w", 1)


def test_the_first_of_several_queues(queue: Queue) -> None:
    others = [factories.queue() for _ in range(250)]
    live(queue.name, run_at=at(100))
    claimed(others[120].name, claim_expires_at=at(70))
    assert 90 < look(queue, *others).due_in <= 100
    live(others[-1].name, run_at=at(40))
    found = look(queue, *others)
    assert 30 < found.due_in <= 40
    assert 60 < found.lapses_in <= 71


def test_jobs_of_other_programs(queue: Queue) -> None:
    queue.enqueue({"not": "a task"})
    claimed(queue.name, claim_expires_at=at(-5))
    assert look(queue, tasks_only=True) == Seen(inf, inf)
    assert look(queue, tasks_only=False).due_in <= 0


def test_another_queue_is_not_seen(queue: Queue) -> None:
    live(factories.queue().name)
    assert look(queue) == Seen(inf, inf)


def test_each_queue_by_itself() -> None:
    queues = [factories.queue() for _ in range(3)]
    live(queues[0].name, run_at=at(100))
    live(queues[1].name)
    wishes = [wish(queue) for queue in queues]
    found = looks.look("default", wishes)
    assert 90 < found.due_in(wishes[:1]) <= 100
    assert found.due_in(wishes[1:]) <= 0
    assert found.due_in(wishes[2:]) == inf


def test_claims_that_were_taken_away(queue: Queue) -> None:
    """Whether by a cancel or by somebody else; not those that have only lapsed."""
    for number in range(5):
        queue.enqueue(number)
    kept, cancelled, taken, again, lapsed = claims = [job.claim for job in queue.claim_batch("w", 5)]
    assert looks.taken_away("default", "w", claims) == []
    assert queue.cancel(cancelled.id)
    factories.change(taken.id, worker_id="another")
    factories.change(again.id, attempts=2)
    factories.lapse(lapsed.id)
    assert looks.taken_away("default", "w", claims) == [cancelled, taken, again]
    assert looks.taken_away("default", "w", [kept]) == []
    assert looks.taken_away("default", "w", []) == []
