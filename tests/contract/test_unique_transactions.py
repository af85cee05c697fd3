"""Unique tasks in transactions: one of several wins, and nobody is told of a job that will never be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from alkstore_django.models import Job, UniqueKey
from alkstore_django.queues import Queue
from tests import factories
from tests.contract.stages import claim
from tests.contract.test_races import serialize, together, waits_for_a_lock
from tests.contract.uniques import unique
from tests.factories import another_session, ask, lapse
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

servers = pytest.mark.only("postgresql", "mysql")  # on SQLite a transaction that writes is alone


def live() -> list[str]:
    return [str(job_id) for job_id in Job.objects.order_by("id").values_list("pk", flat=True)]


@pytest.mark.parametrize("conflict", ["existing", "ignore", "replace"])
def test_a_rollback_frees_the_key(conflict: str) -> None:
    task = unique(on_conflict=conflict)
    with transaction.atomic():
        assert task.enqueue(1).created
        assert task.enqueue(1).created == (conflict == "replace")
        transaction.set_rollback(True)
    assert not UniqueKey.objects.exists()
    again = task.enqueue(1)
    assert again.created and live() == [again.id]


def test_a_rollback_to_a_savepoint_gives_the_key_back() -> None:
    task = unique(on_conflict="replace")
    first = task.enqueue(1)
    with transaction.atomic():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert task.enqueue(1).created
            raise ZeroDivisionError
        assert task.using(on_conflict="existing").enqueue(1).id == first.id
    assert live() == [first.id]


def test_without_autocommit() -> None:
    """Every statement begins a transaction of the caller's, or goes on in it."""
    task = unique()
    transaction.set_autocommit(False)
    try:
        first = task.enqueue(1)
        assert first.created and not task.enqueue(1).created
        transaction.rollback()
        second = task.enqueue(1)
        assert second.created and not task.enqueue(1).created
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert live() == [second.id]


def one_takes(task: Any, then: Callable[[], None]) -> tuple[Any, Any]:
    """One transaction takes a key, another wants it and waits until the first ends with ``then``; both
    results."""
    held = threading.Event()

    def take() -> Any:
        with transaction.atomic():
            result = task.enqueue(1)
            held.set()
            wait_until(waits_for_a_lock, what="the other one waits")
            then()
            return result

    def want() -> Any:
        held.wait(30)
        return task.enqueue(1)

    first, second = together(take, want)
    return first, second


@servers
@pytest.mark.parametrize("there_before", [False, True])
@pytest.mark.parametrize("conflict", ["existing", "ignore", "replace"])
def test_who_comes_second_waits_for_the_commit(conflict: str, there_before: bool) -> None:
    task = unique(on_conflict=conflict)
    if there_before:
        assert task.enqueue(1).cancel()
    first, second = one_takes(task, lambda: None)
    if conflict == "replace":
        assert (second.created, live()) == (True, [second.id])
    else:
        assert (second.created, second.id, live()) == (False, first.id, [first.id])


@servers
@pytest.mark.parametrize("there_before", [False, True])
def test_who_comes_second_waits_for_the_rollback(there_before: bool) -> None:
    task = unique()
    if there_before:
        assert task.enqueue(1).cancel()
    _, second = one_takes(task, lambda: transaction.set_rollback(True))
    assert second.created and live() == [second.id]


@servers
def test_a_held_key_is_waited_for_by_nobody() -> None:
    task = unique()
    first = task.enqueue(1)
    with transaction.atomic():
        assert not task.enqueue(1).created
        found = together(lambda: task.enqueue(1), lambda: task.enqueue(1))
    assert [(each.created, each.id) for each in found] == [(False, first.id)] * 2


@servers
@pytest.mark.parametrize("lasting", ["finished", "queued", 600])
def test_a_waiting_job_does_not_start_before_the_transaction_that_was_told_of_it_ends(lasting: Any) -> None:
    """What that transaction has changed, the job will see."""
    task = unique(unique_for=lasting)
    first = task.enqueue(1)
    queue = Queue(task.queue_name)
    with transaction.atomic():
        assert not task.enqueue(1).created
        assert together(lambda: queue.claim_one("w")) == [None]
        assert together(lambda: task.enqueue(1).id) == [first.id]
    job = queue.claim_one("w")
    assert job is not None and str(job.id) == first.id
    with transaction.atomic():  # and nobody waits for one that runs
        task.enqueue(1)
        assert together(lambda: queue.ack(job)) == [True]


@servers
def test_two_transactions_that_take_the_same_keys_in_another_order() -> None:
    """The database ends one of them, whose error is its own."""
    task = unique()
    barrier = threading.Barrier(2)

    def both(*order: int) -> list[str]:
        try:
            with transaction.atomic():
                first = task.enqueue(order[0])
                barrier.wait(30)
                second = task.enqueue(order[1])
                return [first.id, second.id]
        except DatabaseError:
            return []

    found = together(lambda: both(1, 2), lambda: both(2, 1))
    (kept,) = [ids for ids in found if ids]
    assert sorted(kept) == live()


@servers
def test_outside_of_a_transaction_nobody_sees_a_deadlock() -> None:
    task = unique()
    calls = [(number,) for number in range(300)]

    def many(order: list[Any]) -> list[Any]:
        return task.enqueue_many(order)  # type: ignore[no-any-return]

    found = together(
        lambda: many(calls), lambda: many(calls[::-1]), lambda: many(calls), lambda: many(calls[::-1])
    )
    assert len(live()) == 300
    for result in (result for results in found for result in results):
        assert result.id in live()
    assert sum(result.created for results in found for result in results) == 300


@servers
def test_an_atomic_run_holds_the_key_although_its_claim_has_lapsed() -> None:
    """It has locked the row of its job, so nobody can take that away, and nobody is waited for."""
    task = unique(max_attempts=1)
    first = task.enqueue(1)
    lapse(claim(first).id)
    with another_session() as theirs:
        theirs.execute("SELECT 1 FROM _honker_live WHERE id = %s FOR UPDATE", [int(first.id)])
        assert not task.enqueue(1).created
    assert task.enqueue(1).created


def repeat_reads() -> None:
    level = "TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    if connection.vendor == "postgresql":
        ask(f"SET SESSION CHARACTERISTICS AS {level}")
    else:
        ask(f"SET SESSION {level}")


@servers
@pytest.mark.parametrize("begin", [repeat_reads, serialize], ids=["repeatable read", "serializable"])
@pytest.mark.parametrize("there_before", [False, True])
def test_at_other_levels_of_isolation(begin: Callable[[], None], there_before: bool) -> None:
    """A transaction that reads the tables as they were takes no key that was taken since."""
    task = unique()
    if there_before:
        assert task.enqueue(1).cancel()
    has_read = threading.Event()
    has_taken = threading.Event()

    def look_first() -> Any:
        begin()
        try:
            with transaction.atomic():
                UniqueKey.objects.count()
                Job.objects.count()
                has_read.set()
                has_taken.wait(5)  # a serializable read of MariaDB keeps the other one out until we end
                return task.enqueue(1)
        except DatabaseError:
            return None

    def take() -> Any:
        has_read.wait(30)
        result = task.enqueue(1)
        has_taken.set()
        return result

    early, late = together(look_first, take)
    if early is None:  # PostgreSQL, and MariaDB where it is strict: the error is the caller's
        assert late.created
    else:
        assert early.created != late.created and early.id == late.id
    assert live() == [late.id]


@servers
@pytest.mark.parametrize("begin", [repeat_reads, serialize], ids=["repeatable read", "serializable"])
def test_transactions_of_our_own_at_other_levels(begin: Callable[[], None]) -> None:
    task = unique()

    def work() -> list[Any]:
        begin()
        return [task.enqueue(number % 20) for number in range(60)]

    found = [result for results in together(work, work, work, work) for result in results]
    assert len(live()) == 20 == sum(result.created for result in found)
    assert {result.id for result in found} == set(live())


def test_threads_that_replace_each_other_s_jobs_leave_one() -> None:
    task = unique("k", on_conflict="replace")

    def work() -> list[bool]:
        return [task.enqueue(number).created for number in range(20)]

    found = together(work, work, work)
    assert all(created for results in found for created in results)
    assert len(live()) == 1
    assert factories.Run.objects.filter(status="cancelled").count() == 59


def test_a_job_is_claimed_or_replaced() -> None:
    task = unique("k", on_conflict="replace")
    queue = Queue(task.queue_name)
    done = threading.Event()

    def replace() -> list[Any]:
        try:
            return [task.enqueue(number) for number in range(60)]
        finally:
            done.set()

    def work() -> list[str]:
        acked: list[str] = []
        while not done.is_set() or Job.objects.exists():
            job = queue.claim_one("w")
            if job is not None:
                assert Job.objects.count() == 1
                acked += [str(job.id)] * queue.ack(job)
        return acked

    results, acked = together(replace, work)
    cancelled = {str(job_id) for job_id in factories.Run.objects.values_list("pk", flat=True)}
    created = [result.id for result in results if result.created]
    assert sorted([*acked, *cancelled], key=int) == created
