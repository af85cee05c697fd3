"""What is over by its rule goes, at its very second, and nothing else does."""

from __future__ import annotations

import re
from datetime import timedelta
from secrets import token_hex
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from alkstore_django import locks, pauses, queues, rate_limits, retention
from alkstore_django.models import (
    Attempt,
    DeadJob,
    Job,
    Lock,
    Metadata,
    Notification,
    QueueControl,
    RateLimit,
    RatePeriod,
    Result,
    Run,
    ScheduledJob,
    StreamEvent,
    UniqueKey,
    WorkerProcess,
)
from alkstore_django.pruning import SWEEPS, Pass, Walk
from alkstore_django.queues import Queue
from alkstore_django.retention import Ends, Rule, chosen, rules
from alkstore_django.sql import get_dialect
from tests import factories
from tests.contract.retaining import (
    DAY,
    IS_SHARED,
    attempt,
    dead,
    event,
    ids,
    metadata,
    notification,
    prune,
    scheduled,
)
from tests.contract.uniques import unique
from tests.factories import ask, at, claimed, live, result, run, within_a_second

pytestmark = pytest.mark.django_db

PLAIN = dict.fromkeys(retention.AGED.values())


def ages() -> dict[str, int | None]:
    return {rule.kind: rule.age for rule in rules() if rule.ends == Ends.AGE}


# -- rules ----------------------------------------------------------------------------------------------


def test_the_defaults() -> None:
    """On SQLite notifications are kept: other programs write them, too."""
    kept = {"dead": 180 * DAY, "notifications": None if IS_SHARED else 7 * DAY, "streams": None}
    assert ages() == kept | {"inbox": 30 * DAY}
    assert [rule.kind for rule in rules()] == list(retention.KINDS)


def test_what_the_project_says() -> None:
    with override_settings(ALKSTORE={"NOTIFICATION_TTL": 5, "STREAM_TTL": 6, "DEAD_TTL": 7, "INBOX_TTL": 8}):
        assert ages() == {"dead": 7, "notifications": 5, "streams": 6, "inbox": 8}
    with override_settings(ALKSTORE=PLAIN):
        assert ages() == dict.fromkeys(["dead", "notifications", "streams", "inbox"])
        assert [rule.kind for rule in rules() if rule.is_kept] == list(retention.AGED)


def test_ages_for_one_call() -> None:
    with override_settings(ALKSTORE=PLAIN):
        found = chosen("default", ["streams", "dead"], {"streams": "30d", "dead": timedelta(hours=1)})
    assert found == [
        Rule("dead", Ends.AGE, "DEAD_TTL", 3_600),
        Rule("streams", Ends.AGE, "STREAM_TTL", 30 * DAY),
    ]


@pytest.mark.parametrize(
    ("only", "ages", "words"),
    [
        (["letters"], {}, "There is no kind 'letters'; there are results, runs, dead"),
        ([], {"runs": 5}, "runs has no age; dead, notifications, streams, inbox have"),
        ([], {"dead": 0}, "the age of dead must be from 1"),
        ([], {"dead": "soon"}, "the age of dead must be a duration"),
    ],
)
def test_what_there_is_not(only: Any, ages: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        chosen("default", only, ages)


# -- what is over ---------------------------------------------------------------------------------------


def test_results_and_runs_by_their_own_end() -> None:
    def scenario() -> None:
        Run.objects.all().delete()
        Result.objects.all().delete()
        for job_id, end in ((1, at(-1)), (2, at(0)), (3, at(1)), (4, None)):
            run(job_id, expires_at=end)
            result(job_id, expires_at=end)
        result(5, expires_at=at(0))
        run(6, expires_at=at(0))
        assert prune("results", "runs") == {"results": 3, "runs": 3}
        assert (ids(Run), ids(Result)) == ({3, 4}, {3, 4})

    within_a_second(scenario)


@pytest.mark.parametrize("ttl", [60, 180 * DAY])
def test_dead_letters_by_their_age_with_all_that_belongs_to_them(ttl: int) -> None:
    def scenario() -> None:
        for model in (DeadJob, Attempt, Metadata, ScheduledJob):
            model._default_manager.all().delete()
        old, young = dead(101, ttl), dead(102, ttl - 1)
        for job_id in (old, young):
            attempt(job_id, Attempt.EXPIRED)
            metadata(job_id)
            scheduled(job_id)
        with override_settings(ALKSTORE={"DEAD_TTL": ttl}):
            kinds = {"dead": 1, "history": 2, "metadata": 1, "schedules": 1}
            assert prune(*kinds) == kinds
        assert ids(DeadJob) == ids(Metadata) == ids(ScheduledJob) == {young}
        assert set(Attempt.objects.values_list("job_id", flat=True)) == {young}

    within_a_second(scenario)


def test_none_keeps() -> None:
    dead(101, 1_000 * DAY)
    notification(1_000 * DAY)
    event(1_000 * DAY)
    with override_settings(ALKSTORE=PLAIN):
        assert prune() == {}


@pytest.mark.parametrize(
    ("kind", "make", "model"),
    [("notifications", notification, Notification), ("streams", event, StreamEvent)],
)
def test_messages_by_their_age(kind: str, make: Any, model: Any) -> None:
    def scenario() -> None:
        model.objects.all().delete()
        for age in (120, 61, 60):
            make(age)
        young = {make(59), make(0)}
        with override_settings(ALKSTORE={retention.AGED[kind]: 60}):
            assert prune(kind) == {kind: 3}
        assert ids(model) == young

    within_a_second(scenario)


def test_dead_letters_of_other_programs() -> None:
    """Those without a sign of ours are theirs, where there can be others."""
    dead(101, 60, is_ours=False)
    dead(102, 60)
    metadata(dead(103, 60, is_ours=False))
    scheduled(dead(104, 60, is_ours=False))
    prune(dead=60)
    assert ids(DeadJob) == ({101} if IS_SHARED else set())


def test_the_history_of_one_that_has_left_its_id_is_no_sign() -> None:
    dead(105, 60, is_ours=False)
    attempt(105)
    attempt(105, Attempt.RENUMBERED, other_id=900)
    dead(900, 0)
    attempt(900, Attempt.RENUMBERED, other_id=105)
    prune(dead=60)
    assert ids(DeadJob) == ({105, 900} if IS_SHARED else {900})
    assert set(Attempt.objects.values_list("job_id", flat=True)) == {105, 900}
    DeadJob.objects.all().delete()
    assert prune() == {"history": 4}


def test_jobs_that_wait_or_run_are_never_touched() -> None:
    queue = factories.queue()
    kept = [live(queue.name, run_at=1, created_at=1), live(queue.name, expires_at=1, created_at=1)]
    kept += [claimed(queue.name, created_at=1), claimed(queue.name, claim_expires_at=1, created_at=1)]
    for job_id in kept:
        attempt(job_id)
        metadata(job_id)
        scheduled(job_id)
    assert prune(dead=1, notifications=1, streams=1) == {}
    assert ids(Job) == ids(Metadata) == ids(ScheduledJob) == set(kept)
    assert Attempt.objects.count() == 4


def test_orphans() -> None:
    """Also of jobs that another program has finished: it deletes the live row, and knows nothing of ours."""
    known = [live(), dead(9001, is_ours=False), run(9002), run(9003, expires_at=at(100))]
    gone = [9004, 9005]
    over = run(9006, expires_at=at(-1))
    for job_id in [*known, *gone, over]:
        attempt(job_id)
        attempt(job_id)
        metadata(job_id)
        scheduled(job_id)
    assert prune("history") == {"history": 6}
    assert prune("metadata") == {"metadata": 3}
    assert prune("schedules") == {"schedules": 5}  # a finished job does not come back
    assert prune() == {"runs": 1}
    assert ids(Metadata) == set(known)
    assert ids(ScheduledJob) == {known[0], 9001}


def test_keys_of_jobs_that_are_gone() -> None:
    task = unique(factories.queue().name)
    first, second = (task.using(unique=key).enqueue(1) for key in ("a", "b"))
    assert prune() == {}
    assert queues.cancel(int(first.id))
    assert prune("keys") == {"keys": 1}
    assert UniqueKey.objects.get().job_id == int(second.id)


def test_locks_that_ended() -> None:
    def scenario() -> None:
        Lock.objects.all().delete()
        for name, end in (("over", at(-locks.MARGIN - 1)), ("ended", at(-locks.MARGIN)), ("held", at(60))):
            Lock.objects.create(name=name, owner="o", expires_at=end)
        assert prune("locks") == {"locks": 1}
        assert {lock.name for lock in Lock.objects.all()} == {"ended", "held"}

    within_a_second(scenario)


def test_windows_that_are_over() -> None:
    def scenario() -> None:
        RateLimit.objects.all().delete()
        RatePeriod.objects.all().delete()
        margin = rate_limits.MARGIN
        for name, start in (
            ("a", margin + 61),
            ("a", margin + 60),
            ("b", margin + 61),
            ("theirs", margin * 9),
        ):
            RateLimit.objects.create(name=name, window_start=at(-start))
        for name in ("a", "b"):
            RatePeriod.objects.create(name=name, seconds=60)
        assert prune("rates") == {"rates": 3}
        assert sorted(RateLimit.objects.values_list("name", flat=True)) == ["a", "theirs"]
        assert RatePeriod.objects.get().name == "a"

    within_a_second(scenario)


def test_workers_and_pauses() -> None:
    def scenario() -> None:
        WorkerProcess.objects.all().delete()
        QueueControl.objects.all().delete()
        for name, age in (("old", 301), ("young", 300)):
            row = {"host": "h", "pid": 1, "queues": "[]", "version": "1", "started_at": 1}
            WorkerProcess.objects.create(worker_id=name, heartbeat_at=at(-age), **row)
        for name, end in (("over", at(0)), ("paused", at(1)), ("for ever", None)):
            QueueControl.objects.create(queue=name, paused_at=1, paused_by="", paused_until=end)
        assert prune("workers", "pauses") == {"workers": 1, "pauses": 1}
        assert {pause.queue for pause in pauses.paused()} == {"paused", "for ever"}
        assert WorkerProcess.objects.get().worker_id == "young"

    within_a_second(scenario)


# -- how it goes ----------------------------------------------------------------------------------------


def test_an_empty_database() -> None:
    assert prune() == {}


def test_a_pass_over_nothing_only_reads() -> None:
    dead(101)
    run(1)
    result(1)
    with CaptureQueriesContext(connection) as captured:
        assert prune() == {}
    assert [
        query["sql"] for query in captured if not query["sql"].startswith(("SELECT", "SAVEPOINT", "REL"))
    ] == []


def test_many_in_steps() -> None:
    DeadJob.objects.bulk_create(
        [DeadJob(id=n, queue="q", payload="1", died_at=at(-7_200)) for n in range(1, 1_301)]
    )
    Attempt.objects.bulk_create(
        [Attempt(job_id=n, kind=Attempt.FAILED, ended_at=1) for n in range(1, 1_301) for _ in range(2)]
    )
    young = dead(2_000)
    steps = Pass("default", chosen("default", (), {"dead": 3_600}), 100)
    most = 0
    while steps.kind:
        before = sum(steps.deleted.values())
        steps.step()
        most = max(most, sum(steps.deleted.values()) - before)
    assert (steps.deleted["dead"], steps.deleted["history"], most) == (1_300, 2_600, 100)
    assert ids(DeadJob) == {young}


def test_big_rows_go_few_at_a_time() -> None:
    for number in range(30):
        result(number, token_hex(500_000), expires_at=at(-1))
    (rule,) = chosen("default", ["results"])
    walk, steps = Walk("default", rule), []
    while not (step := walk.step()).is_last:
        steps.append(step.deleted)
    assert sum(steps) + step.deleted == 30
    assert steps[0] == 1  # it does not know yet how fast the disk is


def test_messages_are_looked_at_only_as_far_as_they_are_old() -> None:
    rows = [Notification(channel="c", payload="1", created_at=at(-n)) for n in (*[60] * 100, *[0] * 5_000)]
    Notification.objects.bulk_create(rows)
    assert prune("notifications", notifications=50) == {"notifications": 100}
    (rule,) = chosen("default", ["notifications"], {"notifications": 50})
    with CaptureQueriesContext(connection) as captured:
        assert Walk("default", rule).step() == (0, True)
    assert len(captured) == 2


def test_what_has_come_back_meanwhile_stays() -> None:
    """What was found is judged again by the statement that deletes it."""
    rows = retention.pruning("default")
    ages = {kind: {"age": 60} for kind in retention.AGED}
    dead(101, 60)
    attempt(102)
    run(103, expires_at=at(-1))
    result(103, expires_at=at(-1))
    notification_id = notification(60)
    metadata(104)
    found = {
        kind: rows.look(
            kind, -(2**63), 100, 100, 10**6, **({"age": 60} if kind in retention.AGED else {})
        ).keys
        for kind in ("dead", "history", "runs", "results", "notifications", "metadata")
    }
    assert all(found.values())
    DeadJob.objects.filter(pk=101).update(died_at=at(0))
    factories.dead(102)
    Run.objects.filter(pk=103).update(expires_at=at(60))
    Result.objects.filter(pk=103).update(expires_at=None)
    Notification.objects.filter(pk=notification_id).update(created_at=at(0))
    live(id=104)
    for kind, keys in found.items():
        assert rows.delete(kind, keys, **ages.get(kind, {})) == 0, kind


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.django_db(transaction=True)
def test_it_waits_for_nobody() -> None:
    """Somebody requeues a dead letter in a long transaction, or reads a result to change it."""
    locked, other = dead(101, 60), dead(102, 60)
    run(103, expires_at=at(-1))
    with factories.another_session() as cursor:
        cursor.execute("SELECT 1 FROM _honker_dead WHERE id = %s FOR UPDATE", [locked])
        cursor.execute("SELECT 1 FROM alkstore_runs WHERE job_id = 103 FOR UPDATE")
        steps = Pass("default", chosen("default", (), {"dead": 60}))
        while steps.step():
            pass
        assert (steps.deleted["dead"], steps.deleted["runs"]) == (1, 0)
        assert ids(DeadJob) == {locked}
    assert prune(dead=60) == {"dead": 1, "runs": 1, "history": 1}
    assert other not in ids(DeadJob)


def test_in_a_transaction_of_the_caller() -> None:
    dead(101, 60)
    with transaction.atomic():
        assert prune(dead=60) == {"dead": 1, "history": 1}
        transaction.set_rollback(True)
    assert ids(DeadJob) == {101}


def test_requeued_letters_are_a_new_life(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    job = queue.claim_one("w")
    assert job and queue.fail(job, "no")
    DeadJob.objects.update(died_at=at(-60))
    assert queue.requeue([job_id]) == 1
    assert prune(dead=60) == {}
    assert Attempt.objects.filter(job_id=job_id).count() == 2


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("kind", [kind for kind in retention.KINDS if kind not in (*SWEEPS, "keys", "inbox")])
def test_no_statement_reads_a_table_as_a_whole(kind: str) -> None:
    """Nor any that says what its rows belong to; a range of keys is walked."""
    dialect = get_dialect(connection)
    params = {"after": 0, "upto": 9, "n": 9, "age": 9, "key0": 1, "key1": 2}
    keys = "%(key0)s, %(key1)s"
    for statement in (dialect.reach(kind), dialect.over_within(kind), dialect.delete_over(kind, keys)):
        plan = [row[3] for row in ask(f"EXPLAIN QUERY PLAN {statement}", params)]
        assert not [step for step in plan if re.match(r"SCAN (?!looked|\(subquery)", step)], plan
        assert not [step for step in plan if "TEMP B-TREE" in step], plan
