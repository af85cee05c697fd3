"""An idle worker wakes when a job is put in or becomes due, though it would look only minutes later."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from alkstore_django import bells, queues
from alkstore_django.models import DeadJob, Job
from alkstore_django.models.announcements import bell_directories
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.e2e.connections import SETTINGS
from tests.e2e.test_outage import BACK, TROUBLE, end_sessions
from tests.processes import Journal, Workers, wait_until
from tests.queue_state import live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

# Longer than any test has patience: what runs was not found by chance. MariaDB wakes nobody.
SELDOM = () if connection.vendor == "mysql" else ("--interval", 600)


def held(journal: Journal, line: str) -> Any:
    """A job that this process holds."""
    tasks.write.enqueue(journal.path, line)
    return Queue("default").claim_one("this process")


def buried(journal: Journal, line: str) -> int:
    job = held(journal, line)
    assert Queue("default").fail(job)
    return int(job.id)


def in_a_transaction(journal: Journal, line: str) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        tasks.write.enqueue(journal.path, "rolled back")
        raise ZeroDivisionError
    with transaction.atomic():
        tasks.write.enqueue(journal.path, line)
        with suppress(ZeroDivisionError), transaction.atomic():
            tasks.write.enqueue(journal.path, "rolled back")
            raise ZeroDivisionError


WAYS: dict[str, Callable[[Journal, str], Callable[[], object]]] = {
    "a task": lambda journal, line: partial(tasks.write.enqueue, journal.path, line),
    "many tasks": lambda journal, line: partial(tasks.write.enqueue_many, [(journal.path, line)]),
    "a transaction": lambda journal, line: partial(in_a_transaction, journal, line),
    "a delay": lambda journal, line: partial(
        tasks.write.using(run_after=timedelta(seconds=1)).enqueue, journal.path, line
    ),
    "a retry": lambda journal, line: partial(Queue("default").retry, held(journal, line)),
    "a release": lambda journal, line: partial(Queue("default").release, held(journal, line)),
    "a requeue": lambda journal, line: partial(queues.requeue, [buried(journal, line)]),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_wakes(workers: Workers, journal: Journal, way: str) -> None:
    put_in = WAYS[way](journal, way)
    workers.ready(*SELDOM)
    for probe in ("one", "two"):  # it has looked for the last time, and sleeps
        tasks.write.enqueue(journal.path, probe)
        workers.wait_until(lambda probe=probe: probe in journal.keys, f"probe {probe} is done")
    put_in()
    workers.wait_until(lambda: journal.keys == ["one", "two", way], "it is done")


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_woken_worker_with_kept_and_pooled_connections(
    workers: Workers, journal: Journal, settings: str
) -> None:
    workers.ready(*SELDOM, DJANGO_SETTINGS_MODULE=settings)
    for number in range(20):
        tasks.write.enqueue(journal.path, number)
        workers.wait_until(lambda number=number: len(journal.lines) == number + 1, f"job {number} is done")


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.only("postgresql", "mysql")
def test_it_listens_again_after_a_reconnect(workers: Workers, journal: Journal, settings: str) -> None:
    worker = workers.ready(*SELDOM, DJANGO_SETTINGS_MODULE=settings)
    for times in (1, 2):
        end_sessions()
        worker.wait_for(BACK, times)
        tasks.write.enqueue(journal.path, times)
        workers.wait_until(lambda times=times: str(times) in journal.keys, "it is woken again")
        assert worker.count(TROUBLE) == times
    assert worker.count("Traceback") == 0


def insert(journal: Journal, line: str) -> None:
    """As another program does: nothing rings."""
    with transaction.atomic():  # no worker sees it
        enqueued = tasks.write.enqueue(journal.path, line).id
        payload = Job.objects.values_list("payload", flat=True).get(pk=enqueued)
        transaction.set_rollback(True)
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
            other.execute("INSERT INTO _honker_live (queue, payload) VALUES ('default', ?)", (payload,))
        return
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO _honker_live (queue, payload) VALUES ('default', %s)", [payload])


def test_a_row_of_another_program_is_found(workers: Workers, journal: Journal, settings: Any) -> None:
    """SQLite's worker notices that somebody wrote; elsewhere it finds the row when it looks."""
    settings.ALKSTORE = {"DOORBELL": False, "NOTIFY": False}
    workers.ready(*(SELDOM if connection.vendor == "sqlite" else ()))
    for line in ("one", "two", "three"):
        insert(journal, line)
        workers.wait_until(lambda line=line: line in journal.keys, f"{line} is found")


@pytest.mark.parametrize("arguments", [["--no-listen"], ["--no-listen", "--interval", "0.05"]])
def test_a_worker_that_only_looks(workers: Workers, journal: Journal, arguments: list[str]) -> None:
    before = list(bells.hung(bell_directories("default")))
    workers.ready(*arguments)
    assert list(bells.hung(bell_directories("default"))) == before
    for number in range(5):
        tasks.write.enqueue(journal.path, number)
        workers.wait_until(lambda number=number: len(journal.lines) == number + 1, f"job {number} is done")


def test_settings_without_a_wake(workers: Workers, journal: Journal) -> None:
    workers.ready(DJANGO_SETTINGS_MODULE="tests.e2e.silent")
    for number in range(3):
        tasks.write.enqueue(journal.path, number)
        workers.wait_until(lambda number=number: len(journal.lines) == number + 1, f"job {number} is done")


def test_many_workers(workers: Workers, journal: Journal) -> None:
    """Each of them is woken, one of them has the job."""
    for _ in range(4):
        workers.ready("--threads", 1, *SELDOM)
    ids = []
    for number in range(25):
        ids.append(int(tasks.write.enqueue(journal.path, number).id))
        workers.wait_until(lambda number=number: len(journal.lines) > number, f"job {number} is done")
    workers.wait_until(lambda: not live(), "all is settled")
    assert journal.keys == [str(number) for number in range(25)]
    assert succeeded() == set(ids)


def test_a_claim_that_lapses_wakes(workers: Workers, journal: Journal) -> None:
    tasks.write.enqueue(journal.path, "abandoned")
    assert Queue("default", visibility_timeout=2).claim_one("a worker that vanished")
    workers.ready(*SELDOM)
    workers.wait_until(lambda: journal.keys == ["abandoned"], "it is taken over")


@pytest.mark.only("sqlite")
def test_bells_of_the_dead(workers: Workers, journal: Journal) -> None:
    """Killed workers leave their bells behind: the others do not mind, and they are taken away."""
    (directory, *_) = directories = bell_directories("default")
    bells.ring(directories)  # those of other tests
    killed = [workers.ready(*SELDOM) for _ in range(2)]
    assert len(list(bells.hung(directories))) == 2
    for worker in killed:
        worker.stop(signal.SIGKILL)
    assert len(list(bells.hung(directories))) == 2
    last = workers.ready(*SELDOM)
    assert len(list(bells.hung(directories))) == 1
    tasks.write.enqueue(journal.path, "job")
    workers.wait_until(lambda: journal.keys == ["job"], "it is done")
    assert last.stop() == 0
    assert not os.path.exists(directory)


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("timeout", ["tests.settings", "tests.concurrency.impatient"])
def test_a_moment_that_passes_while_the_file_is_locked(
    workers: Workers, journal: Journal, timeout: str
) -> None:
    """H122: what became due meanwhile is not slept over."""
    worker = workers.ready("--interval", 600, DJANGO_SETTINGS_MODULE=timeout)
    worker.freeze()  # or the moment might come before the lock
    tasks.write.using(run_after=timedelta(seconds=2)).enqueue(journal.path, "job")
    (job,) = Job.objects.all()
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        worker.send(signal.SIGCONT)
        now = "SELECT unixepoch() > ? + 2"
        wait_until(lambda: other.execute(now, (job.run_at,)).fetchone()[0], what="its moment has passed")
        assert journal.lines == []
        other.execute("ROLLBACK")
    workers.wait_until(lambda: journal.keys == ["job"], "it is done")
    assert not DeadJob.objects.exists()
