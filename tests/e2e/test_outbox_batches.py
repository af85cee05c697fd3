"""Outboxes that take many events at once: together the first time, each by itself once that has failed."""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import Any

import pytest
from django.db import connection

from alkstore_django.models import DeadJob, Job
from alkstore_django.sql import tables
from tests.app.outboxes import write_heap, write_heap_at_ease, write_heap_later
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, live

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.e2e.relaying"}


def enqueue(journal: Journal, n: int, keys: Any = None, outbox: Any = write_heap, **doing: str) -> None:
    """``n`` events; ``doing`` says what some do, ``_3="fail"`` the third."""
    payloads = [{"path": journal.path, "n": number, "do": doing.get(f"_{number}")} for number in range(n)]
    outbox.enqueue_many(payloads, keys=keys)


def drain(workers: Workers, *arguments: object, exit_code: int = 0) -> Process:
    worker = workers.start("--batch", "--interval", 0.05, *arguments, **SETTINGS)
    assert worker.join() == exit_code, worker
    return worker


def heaps(journal: Journal) -> list[tuple[list[int], list[int]]]:
    """The numbers of the events of each call, and their attempts."""
    lines = [line.split() for line in journal.lines]
    return [
        ([int(n) for n in numbers.split(",")], [int(n) for n in attempts.split(",")])
        for numbers, attempts in lines
    ]


@pytest.mark.parametrize("outbox", [write_heap, write_heap_later], ids=["function", "coroutine"])
def test_events_come_in_lists(workers: Workers, journal: Journal, outbox: Any) -> None:
    enqueue(journal, 35, outbox=outbox)
    drain(workers, "--threads", 1)
    assert [len(numbers) for numbers, _ in heaps(journal)] == [10, 10, 10, 5]
    assert [n for numbers, _ in heaps(journal) for n in numbers] == list(range(35))
    assert not live() and not dead()


def test_those_of_a_key_come_one_after_the_other(workers: Workers, journal: Journal) -> None:
    enqueue(journal, 60, keys=[n % 6 for n in range(60)])
    drain(workers)
    came = [n for numbers, _ in heaps(journal) for n in numbers]
    assert [[n for n in came if n % 6 == key] for key in range(6)] == [
        list(range(key, 60, 6)) for key in range(6)
    ]
    assert all(len({n % 6 for n in numbers}) == len(numbers) for numbers, _ in heaps(journal))
    assert max(len(numbers) for numbers, _ in heaps(journal)) > 1


def test_one_that_is_poisoned_spoils_no_other(workers: Workers, journal: Journal) -> None:
    enqueue(journal, 10, _4="fail")
    drain(workers)
    first, *later = heaps(journal)
    assert first == (list(range(10)), [1] * 10)
    assert Counter(n for numbers, _ in later for n in numbers) == {**dict.fromkeys(range(10), 1), 4: 2}
    assert all(len(numbers) == 1 for numbers, _ in later)
    (letter,) = DeadJob.objects.all()
    assert (letter.attempts, json.loads(letter.payload)["n"]) == (3, 4)


def test_one_that_is_discarded_takes_no_other_with_it(workers: Workers, journal: Journal) -> None:
    enqueue(journal, 10, _4="discard")
    drain(workers)
    assert heaps(journal)[0] == (list(range(10)), [1] * 10)
    assert sorted(heaps(journal)[1:]) == [([n], [2]) for n in range(10)]
    assert not live() and not dead()


def test_the_timeout_is_that_of_the_list(workers: Workers, journal: Journal) -> None:
    enqueue(journal, 5, _4="be long")
    worker = drain(workers)
    assert worker.count("attempt 1 of 3 failed .*TaskTimedOut") == 5
    assert [letter.attempts for letter in DeadJob.objects.all()] == [3]


def test_what_cannot_be_interrupted_ends_with_the_process(workers: Workers, journal: Journal) -> None:
    enqueue(journal, 5, _0="be stuck")
    worker = drain(workers, exit_code=70)
    assert worker.count("attempt 1 of 3 failed .*TaskTimedOut") == 5
    assert Job.objects.filter(attempts=1).count() == 5
    drain(workers)
    assert not live() and not dead()


def test_a_stop_puts_all_of_a_list_back(workers: Workers, journal: Journal) -> None:
    enqueue(journal, 5, outbox=write_heap_at_ease, _0="be interrupted")
    worker = workers.start("--interval", 0.05, **SETTINGS)
    workers.wait_until(lambda: journal.lines, "the list has begun")
    assert worker.stop(signal.SIGTERM) == 1
    assert worker.count("TaskTimedOut") == 0
    assert set(Job.objects.values_list("state", "attempts")) == {("pending", 1)}
    assert Job.objects.count() == 5


def test_a_payload_that_is_no_json_spoils_no_other(workers: Workers, journal: Journal) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {tables.LIVE} (queue, payload) VALUES (%s, '{{')", [write_heap.queue_name]
        )
    enqueue(journal, 5)
    drain(workers)
    assert heaps(journal) == [(list(range(5)), [1] * 5)]
    assert [letter.payload for letter in DeadJob.objects.all()] == ["{"]
