"""Threads with a connection each, on one database: of several at the same time, one wins."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction

from alkstore_django import health, queues, turns
from alkstore_django.models import DeadJob, Job
from alkstore_django.models.base import in_transaction
from alkstore_django.queues import Queue
from alkstore_django.turns import Wish
from tests import factories
from tests.factories import ask, history, where
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 4
PATIENCE = {
    "postgresql": "SET lock_timeout = '20s'",
    "mysql": "SET SESSION innodb_lock_wait_timeout = 3",  # eight times, as a wait is tried again
}


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run calls at the same time; what each returned."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            if connection.vendor in PATIENCE:  # who waits for a lock that never comes free fails
                ask(PATIENCE[connection.vendor])
            barrier.wait(30)
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(60) for future in [pool.submit(run, call) for call in calls]]


def test_every_job_is_claimed_by_one(queue: Queue) -> None:
    ids = queue.enqueue_many(range(120))

    def work(worker: str) -> list[int]:
        done: list[int] = []
        while Job.objects.filter(queue=queue.name).exists():
            jobs = queue.claim_batch(worker, 7)
            assert queue.ack_batch(jobs) == len(jobs)
            done += [job.id for job in jobs]
        return done

    found = together(*(lambda worker=f"w{number}": work(worker) for number in range(THREADS)))  # type: ignore[misc]
    assert Counter(job_id for done in found for job_id in done) == Counter(ids)


def test_every_turn_claims_for_itself(queue: Queue) -> None:
    ids = queue.enqueue_many(range(60))

    def work(worker: str) -> list[int]:
        done: list[int] = []
        outcomes: list[turns.Outcome] = []
        while Job.objects.filter(queue=queue.name).exists():
            turn = turns.take("default", worker, outcomes, [Wish(queue.name, 5, 60, tasks_only=False)], 5)
            assert turn.lost == []
            outcomes = [turns.Outcome(claim, turns.Verdict.ACK, value="1") for claim in turn.claims]
            done += [claim.id for claim in turn.claims]
        return done

    found = together(*(lambda worker=f"w{number}": work(worker) for number in range(THREADS)))  # type: ignore[misc]
    assert Counter(job_id for done in found for job_id in done) == Counter(ids)
    assert factories.Run.objects.filter(queue=queue.name).count() == 60


@pytest.mark.only("postgresql", "mysql")  # which lock rows, and so can deadlock
@pytest.mark.parametrize("n", [1, 7, 10])
def test_only_what_is_claimed_is_locked(queue: Queue, n: int) -> None:
    ids = [job_id for priority in (3, 2, 1) for job_id in queue.enqueue_many(range(5), priority=priority)]
    with transaction.atomic():
        mine = queue.claim_batch("mine", n)
        assert [job.id for job in mine] == ids[:n]
        (rest,) = together(lambda: queue.claim_batch("another", 99))
    assert [job.id for job in rest] == ids[n:]


def test_a_lapsed_claim_is_taken_by_one(queue: Queue) -> None:
    job_id = factories.claimed(queue.name, claim_expires_at=factories.at(-1))
    found = together(*(lambda worker=f"w{number}": queue.claim_one(worker) for number in range(THREADS)))  # type: ignore[misc]
    assert [job.id for job in found if job] == [job_id]
    assert history(job_id) == [("lost", 1, 1)]


def test_of_parallel_requeues_one_wins(queue: Queue) -> None:
    job_id = factories.dead(queue.enqueue(1) + 1_000, queue.name)
    found = together(*(lambda: queue.requeue([job_id]),) * THREADS)
    assert sorted(found) == [0] * (THREADS - 1) + [1]
    assert (where(job_id), history(job_id)) == ("live", [("requeued", 2, None)])


def test_ack_against_cancel(queue: Queue) -> None:
    queue.enqueue_many(range(10))
    for job in queue.claim_batch("w", 10):
        acked, cancelled = together(lambda job=job: queue.ack(job), lambda job=job: queues.cancel(job.id))  # type: ignore[misc]
        assert acked != cancelled
        assert where(job.id) == ("run" if cancelled else "")


def test_fail_against_cancel(queue: Queue) -> None:
    queue.enqueue_many(range(10))
    for job in queue.claim_batch("w", 10):
        failed, cancelled = together(
            lambda job=job: queue.fail(job, "no"),  # type: ignore[misc]
            lambda job=job: queues.cancel(job.id),  # type: ignore[misc]
        )
        assert failed != cancelled
        assert where(job.id) == ("run" if cancelled else "dead")


def test_sweeps_at_the_same_time(queue: Queue) -> None:
    queue.enqueue_many(range(600), expires=0)
    moved = sum(together(*(queue.sweep_expired,) * THREADS))
    assert moved > 500
    assert moved + queue.sweep_expired() == 600  # a row that two of them met may have been left by both
    assert DeadJob.objects.filter(queue=queue.name).count() == 600


def test_claims_whose_ids_are_all_taken(queue: Queue) -> None:
    """Burials need fresh ids at the same time as enqueues need theirs, and the sequence lags behind."""
    for job_id in queue.enqueue_many(range(20)):
        factories.dead(job_id, "another")
    factories.result(job_id + 1_000_000)
    jobs = queue.claim_batch("w", 20)

    def bury(part: list[Any]) -> int:
        return sum(queue.fail(job, "no") for job in part)

    def enqueue() -> int:
        return len({queue.enqueue("more") for _ in range(20)})

    assert together(lambda: bury(jobs[::2]), lambda: bury(jobs[1::2]), enqueue, enqueue) == [10, 10, 20, 20]
    assert DeadJob.objects.filter(queue=queue.name).count() == 20
    assert Job.objects.filter(queue=queue.name).count() == 40


@pytest.mark.only("postgresql", "mysql")  # SQLite has one writer
def test_ids_are_raised_beside_open_transactions(queue: Queue) -> None:
    """A business transaction that has enqueued may stay open for minutes: nobody waits for it."""
    known = factories.dead(queue.enqueue(1) + 50_000, queue.name)
    with transaction.atomic():
        queue.enqueue("not yet committed")
        together(lambda: health.raise_sequence("default"))
        (above,) = together(lambda: queue.enqueue(2))
        assert above == known + 1
        (known,) = together(lambda: factories.dead(above + 100, queue.name))
        (above,) = together(lambda: in_transaction("default", Job.objects.fresh_id))
    assert above == known + 1 == queue.enqueue(3) - 1


@pytest.mark.only("postgresql", "mysql")  # which lock rows, and so can deadlock
def test_a_deadlock_of_our_own_transactions_is_run_again(queue: Queue) -> None:
    ids = queue.enqueue_many([1, 2])
    tries, meeting = [], threading.Barrier(2)

    def lock(first: int, second: int) -> Callable[[], Any]:
        def work() -> None:
            tries.append(first)
            jobs = Job.objects.db_manager("default")
            jobs.lock(first)
            if len(tries) <= 2:
                meeting.wait(30)  # each has one row now, and wants the other's
            jobs.lock(second)

        return lambda: in_transaction("default", work)

    together(lock(*ids), lock(*ids[::-1]))
    assert len(tries) >= 3


@pytest.mark.only("postgresql", "mysql")  # which lock rows, and so can deadlock
def test_a_deadlock_in_a_transaction_of_the_caller_is_the_callers(queue: Queue) -> None:
    ids = queue.enqueue_many([1, 2])
    tries, meeting = [], threading.Barrier(2)

    def lock(first: int, second: int) -> bool:
        jobs = Job.objects.db_manager("default")

        def work() -> None:
            tries.append(second)
            jobs.lock(second)

        try:
            with transaction.atomic():
                jobs.lock(first)
                meeting.wait(30)
                in_transaction("default", work)
        except DatabaseError:
            return False
        return True

    assert sorted(together(lambda: lock(*ids), lambda: lock(*ids[::-1]))) == [False, True]
    assert sorted(tries) == ids


def serialize() -> None:
    """Every transaction of this connection is serializable; on MariaDB as strict as newer ones are."""
    if connection.vendor == "postgresql":
        ask("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    else:
        ask("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        if ask("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
            ask("SET SESSION innodb_snapshot_isolation = ON")


def waits_for_a_lock() -> bool:
    if connection.vendor == "postgresql":
        sql = "pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    else:
        time.sleep(0.15)  # the table is not written anew while it is read more often than each 0.1 s
        sql = (
            "information_schema.innodb_trx JOIN information_schema.processlist ON id = trx_mysql_thread_id "
            "WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()"
        )
    return bool(ask(f"SELECT 1 FROM {sql}"))


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("write", ["ack", "heartbeat", "release"])
def test_a_single_statement_that_fails_to_serialize_is_run_again(queue: Queue, write: str) -> None:
    queue.enqueue(1)
    job = queue.claim_one("w")
    held = threading.Event()

    def change() -> None:
        with transaction.atomic():
            Job.objects.update(priority=7)
            held.set()
            wait_until(waits_for_a_lock, what="the other one waits")

    def settle() -> bool:
        serialize()
        held.wait(30)
        return bool(getattr(queue, write)(job))

    assert together(change, settle) == [None, True]
    assert Job.objects.filter(priority=7).count() == (0 if write == "ack" else 1)


@pytest.fixture
def writer(sqlite: None) -> Iterator[Any]:
    """Another program, which holds the write lock of the file."""
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
    yield other
    other.close()
    ask("PRAGMA busy_timeout = 20000")


def test_a_locked_file_is_waited_for_as_long_as_configured(queue: Queue, writer: Any) -> None:
    refused: list[str] = []

    def noted(execute: Any, sql: str, *rest: Any) -> Any:
        try:
            return execute(sql, *rest)
        except OperationalError:
            refused.append(sql)
            raise

    ask("PRAGMA busy_timeout = 200")
    for call in (lambda: queue.enqueue(1), lambda: queue.claim_one("w"), lambda: queue.cancel(1)):
        started = time.monotonic()
        refused.clear()
        with connection.execute_wrapper(noted), pytest.raises(OperationalError, match="locked"):
            call()
        assert time.monotonic() - started > 0.1
        assert len(refused) == 1, "once, and not once for each of several tries"
    assert not connection.in_atomic_block
    with writer.cursor() as cursor:
        cursor.execute("ROLLBACK")
    assert queue.enqueue(1)


def test_our_own_transactions_begin_with_a_write(queue: Queue, sqlite: None) -> None:
    """Without ``transaction_mode`` a read that turns into a write would fail if another wrote in between."""
    theirs = connections["default"]
    options = {
        key: value for key, value in theirs.settings_dict["OPTIONS"].items() if key != "transaction_mode"
    }
    deferred = type(theirs)({**theirs.settings_dict, "OPTIONS": options}, "default")
    other = theirs.copy()
    connections["default"] = deferred
    try:
        with other.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 0")
            queue.enqueue(1)

            def work() -> None:
                assert Job.objects.filter(queue=queue.name).count() == 1
                with pytest.raises(OperationalError, match="locked"):
                    cursor.execute("UPDATE _honker_live SET priority = 5")
                Job.objects.filter(queue=queue.name).update(priority=6)

            in_transaction("default", work)
    finally:
        other.close()
        deferred.close()
        connections["default"] = theirs
    assert list(Job.objects.filter(queue=queue.name).values_list("priority", flat=True)) == [6]
