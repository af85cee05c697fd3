"""The registry of workers: what is written, read and forgotten, and that nobody waits for it."""

from __future__ import annotations

import os
import socket

import pytest
from django.db import connection

from alkstore_django import __version__, status, workers
from alkstore_django.models import WorkerProcess
from alkstore_django.queues import Queue
from alkstore_django.workers import FORGET, STALE, Entry, WorkerInfo
from tests import factories
from tests.factories import at, now, within_a_second

pytestmark = pytest.mark.django_db


def entry(worker_id: str = "w", *queues: str, excluded: tuple[str, ...] = ()) -> Entry:
    return Entry("default", worker_id, queues or ("default",), excluded)


def silence(worker_id: str, seconds: int) -> None:
    assert WorkerProcess.objects.filter(pk=worker_id).update(heartbeat_at=at(-seconds)) == 1


def test_the_row() -> None:
    def scenario() -> None:
        entry("w", "mail", "bulk-*", excluded=("bulk-x",)).write(2)
        (worker,) = workers.workers()
        assert worker == WorkerInfo(
            worker_id="w",
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=("mail", "bulk-*"),
            excluded=("bulk-x",),
            version=__version__,
            started_at=now(),
            heartbeat_at=now(),
            running=2,
            silent_for=0,
        )
        assert not worker.is_stale

    within_a_second(scenario)


def test_a_heartbeat() -> None:
    mine, other = entry("mine"), entry("other")
    mine.write(0)
    other.write(0)
    WorkerProcess.objects.update(started_at=at(-500), heartbeat_at=at(-20))
    mine.beat(3, 501)
    found = {worker.worker_id: worker for worker in workers.workers()}
    assert found["mine"].running == 3
    assert found["mine"].silent_for < 20
    assert found["other"].silent_for >= 20
    assert {now() - worker.started_at >= 500 for worker in found.values()} == {True}


def test_a_lost_row_is_written_again() -> None:
    mine = entry("w", "mail")
    mine.write(0)
    WorkerProcess.objects.all().delete()
    mine.beat(1, 120)
    (worker,) = workers.workers()
    assert (worker.worker_id, worker.queues, worker.running) == ("w", ("mail",), 1)
    assert 0 <= now() - worker.started_at - 120 < 60


def test_a_row_of_the_same_name_is_replaced() -> None:
    entry("w", "mail").write(5)
    WorkerProcess.objects.update(host="elsewhere", pid=1, started_at=1, heartbeat_at=1)
    entry("w", "bulk").write(0)
    (worker,) = workers.workers()
    assert (worker.host, worker.pid, worker.queues) == (socket.gethostname(), os.getpid(), ("bulk",))
    assert worker.started_at > 1
    assert not worker.is_stale


def test_the_end() -> None:
    mine = entry("w")
    mine.write(0)
    entry("other").write(0)
    mine.delete()
    mine.delete()
    assert [worker.worker_id for worker in workers.workers()] == ["other"]


def test_what_is_stale_and_what_is_forgotten() -> None:
    ages = {"fresh": 0, "late": STALE - 30, "stale": STALE + 1, "old": FORGET - 60, "gone": FORGET + 1}
    for name, age in ages.items():
        entry(name).write(0)
        silence(name, age)
    stale = {worker.worker_id for worker in workers.workers() if worker.is_stale}
    assert stale == {"stale", "old", "gone"}
    workers.forget_stale("default")
    assert {worker.worker_id for worker in workers.workers()} == {"fresh", "late", "stale", "old"}


@pytest.mark.parametrize(
    ("queues", "excluded", "served", "others"),
    [
        (("mail",), (), ["mail"], ["Mail", "mails", ""]),
        (("mail*", "x"), ("mail-b*",), ["mail", "mails", "mail-a", "x"], ["mail-b", "mail-bc", "y"]),
        (("*",), (), ["mail", ""], ["_outbox:mail"]),
        (("*", "_outbox:*"), (), ["mail", "_outbox:mail"], []),
        ((r"odd\*name", r"a\,b"), (), ["odd*name", "a,b"], ["oddname", "a", "b"]),
    ],
)
def test_what_it_serves(
    queues: tuple[str, ...], excluded: tuple[str, ...], served: list[str], others: list[str]
) -> None:
    entry("w", *queues, excluded=excluded).write(0)
    (worker,) = workers.workers()
    assert [name for name in served + others if worker.serves(name)] == served


def test_a_queue_is_known_by_its_worker(queue: Queue) -> None:
    entry("w", queue.name).write(0)
    assert status.is_known("default", queue.name)
    silence("w", STALE + 1)
    assert not status.is_known("default", queue.name)


# -- nobody waits for it --------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.only("postgresql", "mysql")
def test_a_row_that_somebody_locks(queue: Queue) -> None:
    """An operator has deleted it, and has not committed yet."""
    mine, other = entry("mine"), entry("other")
    mine.write(0)
    other.write(0)
    silence("mine", FORGET + 1)
    with factories.another_session() as cursor:
        cursor.execute("DELETE FROM alkstore_workers WHERE worker_id = 'mine'")
        mine.beat(1, 5)
        workers.forget_stale("default")
        mine.delete()
        assert {worker.worker_id for worker in workers.workers()} == {"mine", "other"}
    mine.beat(1, 5)
    assert {worker.worker_id: worker.is_stale for worker in workers.workers()} == {
        "mine": False,
        "other": False,
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.only("postgresql")
def test_a_table_that_somebody_locks() -> None:
    mine = entry("mine")
    mine.write(0)
    with factories.another_session() as cursor:
        cursor.execute("TRUNCATE alkstore_workers")
        mine.beat(1, 5)
        mine.delete()
    assert [worker.worker_id for worker in workers.workers()] == []
    mine.beat(1, 5)
    assert [worker.worker_id for worker in workers.workers()] == ["mine"]


def test_one_statement_where_there_is_one_writer(django_assert_num_queries: object) -> None:
    mine = entry("w")
    mine.write(0)
    limit = 1 if connection.vendor == "sqlite" else 5
    with django_assert_num_queries(limit, exact=False):  # type: ignore[operator]
        mine.beat(0, 10)
