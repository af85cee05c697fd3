"""What wakes the workers: every commit that puts a job in, once, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from django.db import connection, transaction

from alkstore_django import queues
from alkstore_django.queues import Queue
from tests import ears, factories
from tests.app import tasks
from tests.ears import Ear

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("sqlite", "postgresql")]


@pytest.fixture
def ear() -> Iterator[Ear]:
    with ears.ear() as opened:
        yield opened


def claimed(queue: Queue) -> Any:
    queue.enqueue(1)
    return queue.claim_one("w")


def buried(queue: Queue) -> int:
    job = claimed(queue)
    assert queue.fail(job)
    return int(job.id)


PREPARE: dict[str, Callable[[Queue], Any]] = {
    "retry": claimed,
    "release": claimed,
    "release what had started": claimed,
    "requeue": buried,
    "requeue of any queue": buried,
}
PATHS: dict[str, Callable[[Queue, Any], Any]] = {
    "enqueue": lambda queue, _: queue.enqueue(1),
    "enqueue for later": lambda queue, _: queue.enqueue(1, delay=60),
    "enqueue_many": lambda queue, _: len(queue.enqueue_many(range(2_500))) == 2_500,
    "a task": lambda queue, _: tasks.nothing.enqueue(),
    "many tasks": lambda queue, _: tasks.nothing.enqueue_many([()] * 10),
    "retry": lambda queue, job: queue.retry(job),
    "release": lambda queue, job: queue.release(job),
    "release what had started": lambda queue, job: queue.release(job, started=True),
    "requeue": lambda queue, job_id: queue.requeue([job_id]) == 1,
    "requeue of any queue": lambda queue, job_id: queues.requeue([job_id]) == {job_id: job_id},
}
NOT_PATHS: dict[str, Callable[[Queue, Any], Any]] = {
    "nothing to enqueue": lambda queue, _: queue.enqueue_many([]) == [],
    "ack": lambda queue, job: queue.ack(job),
    "retry later": lambda queue, job: queue.retry(job, delay=60),
    "a claim that was lost": lambda queue, job: queue.ack(job) and not queue.release(job),
    "fail": lambda queue, job: queue.fail(job),
    "heartbeat": lambda queue, job: queue.heartbeat(job),
    "cancel": lambda queue, job: queue.cancel(job.id),
    "requeue of nothing": lambda queue, _: queue.requeue([10**6]) == 0,
}


@pytest.mark.parametrize("path", PATHS)
def test_every_way_in_rings_once(queue: Queue, ear: Ear, path: str) -> None:
    prepared = PREPARE.get(path, lambda queue: None)(queue)
    ear.rings()
    assert PATHS[path](queue, prepared)
    assert ear.rings() == 1
    prepared = PREPARE.get(path, lambda queue: None)(queue)
    ear.rings()
    with transaction.atomic():
        assert PATHS[path](queue, prepared)
        assert ear.rings() == 0
    assert ear.rings() == 1


@pytest.mark.parametrize("path", NOT_PATHS)
def test_nothing_else_rings(queue: Queue, ear: Ear, path: str) -> None:
    job = claimed(queue)
    ear.rings()
    assert NOT_PATHS[path](queue, job)
    assert ear.rings() == 0


@pytest.mark.parametrize("path", PATHS)
def test_what_is_rolled_back_does_not_ring(queue: Queue, ear: Ear, path: str) -> None:
    prepared = PREPARE.get(path, lambda queue: None)(queue)
    ear.rings()
    with suppress(ZeroDivisionError), transaction.atomic():
        assert PATHS[path](queue, prepared)
        raise ZeroDivisionError
    with transaction.atomic(), suppress(ZeroDivisionError), transaction.atomic():
        assert PATHS[path](queue, prepared)
        raise ZeroDivisionError
    assert ear.rings() == 0


def test_once_for_a_transaction(queue: Queue, ear: Ear) -> None:
    """However often something is put in, at whatever depth."""
    with transaction.atomic():
        for number in range(20):
            queue.enqueue(number)
            with transaction.atomic():
                queue.enqueue_many([number, number])
                with transaction.atomic():
                    tasks.nothing.enqueue()
    assert ear.rings() == 1


@pytest.mark.only("sqlite")
def test_one_callback_for_a_transaction(queue: Queue, ear: Ear) -> None:
    with transaction.atomic():
        with transaction.atomic():
            queue.enqueue(1)
        for _ in range(20):
            with transaction.atomic():
                queue.enqueue(2)
        queue.enqueue_many([3, 4])
        assert len(connection.run_on_commit) == 1
    assert ear.rings() == 1


def test_of_several_savepoints_some_are_rolled_back(queue: Queue, ear: Ear) -> None:
    """The ring that was promised in one that is, is promised again in the next."""

    def rolled_back() -> None:
        with suppress(ZeroDivisionError), transaction.atomic():
            queue.enqueue("no")
            with transaction.atomic():
                queue.enqueue("no")
            raise ZeroDivisionError

    def kept() -> None:
        with transaction.atomic():
            queue.enqueue("yes")

    for steps, expected in (
        ([rolled_back, kept], 1),
        ([kept, rolled_back], 1),
        ([rolled_back, kept, rolled_back], 1),
        ([rolled_back, rolled_back], 0),
    ):
        with transaction.atomic():
            for step in steps:
                step()
        assert ear.rings() == expected, steps


def test_a_savepoint_that_was_released_within_one_that_is_rolled_back(queue: Queue, ear: Ear) -> None:
    with transaction.atomic():
        with suppress(ZeroDivisionError), transaction.atomic():
            with transaction.atomic():
                queue.enqueue("no")
            queue.enqueue("no")
            raise ZeroDivisionError
        queue.enqueue("yes")
    assert ear.rings() == 1


def test_transactions_one_after_the_other(queue: Queue, ear: Ear) -> None:
    for _ in range(3):
        with transaction.atomic():
            queue.enqueue(1)
        with suppress(ZeroDivisionError), transaction.atomic():
            queue.enqueue(1)
            raise ZeroDivisionError
    assert ear.rings() == 3


def test_two_threads(queue: Queue, ear: Ear) -> None:
    """A transaction of one thread knows nothing of those of another."""
    entered, left = threading.Event(), threading.Event()

    def other() -> None:
        entered.wait(30)
        queue.enqueue(1)
        connection.close()
        left.set()

    thread = threading.Thread(target=other)
    thread.start()
    if connection.vendor == "sqlite":  # its transactions have to come one after the other
        entered.set()
        left.wait(30)
    with transaction.atomic():
        queue.enqueue(1)
        entered.set()
        assert left.wait(30)
    thread.join()
    assert ear.rings() == 2


def test_in_a_callback_of_the_project(queue: Queue, ear: Ear) -> None:
    """What it enqueues rings as well, in a transaction of its own or without one."""

    def later() -> None:
        queue.enqueue(1)
        with transaction.atomic():
            queue.enqueue(2)

    with transaction.atomic():
        queue.enqueue(0)
        transaction.on_commit(later)
    assert ear.rings() == 3
    with transaction.atomic():
        transaction.on_commit(later)
        queue.enqueue(0)
    assert ear.rings() in (2, 3)  # the ring that is still to come may do for the transaction in between


def test_autocommit_off(queue: Queue, ear: Ear) -> None:
    """Nobody says when it was committed: SQLite's workers find out by themselves."""
    transaction.set_autocommit(False)
    try:
        queue.enqueue(1)
        transaction.rollback()
        assert ear.rings() == 0
        queue.enqueue(1)
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert ear.rings() == (1 if connection.vendor == "postgresql" else 0)


@pytest.mark.parametrize("path", PATHS)
def test_switched_off(queue: Queue, ear: Ear, settings: Any, path: str) -> None:
    settings.ALKSTORE = {"DOORBELL": False, "NOTIFY": False}
    prepared = PREPARE.get(path, lambda queue: None)(queue)
    assert PATHS[path](queue, prepared)
    assert ear.rings() == 0


@pytest.mark.only("sqlite")
def test_a_directory_of_the_projects_choice(queue: Queue, ear: Ear, settings: Any) -> None:
    with TemporaryDirectory() as directory:  # with a short path, as a socket needs it
        settings.ALKSTORE = {"SOCKET_DIR": directory}
        with ears.ear() as chosen:
            queue.enqueue(1)
            assert chosen.rings() == 1
        assert ear.rings() == 0


def test_the_notifications_of_honker_do_not_grow(ear: Ear) -> None:
    """H65d: to wake somebody leaves no row."""
    with transaction.atomic():
        for number in range(100):
            factories.queue().enqueue(number)
    assert ear.rings() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM _honker_notifications")
        assert cursor.fetchone() == (0,)
