"""A worker's turn: what has finished is settled and what is next is claimed, in one transaction."""

from __future__ import annotations

import pytest

from alkstore_django import settling, turns
from alkstore_django.models import Attempt, DeadJob, Job, Result, Run
from alkstore_django.queues import Queue
from alkstore_django.turns import Outcome, Turn, Verdict, Wish
from tests import factories
from tests.contract.clerk import NO, claims, settle, wish
from tests.factories import at, change, columns, history, now, where, within_a_second

pytestmark = pytest.mark.django_db

TASK = {"__honker_task__": {"task": "a.b", "args": [], "kwargs": {}}}


def test_settles_and_claims_together(queue: Queue) -> None:
    (done,) = claims(queue, 1)
    next_id = queue.enqueue(2)
    turn = turns.take("default", "w", [Outcome(done, Verdict.ACK)], [wish(queue)], 5)
    assert turn.lost == []
    assert [claim.id for claim in turn.claims] == [next_id]
    assert where(done.id) == "run"


def test_all_verdicts_at_once(queue: Queue) -> None:
    def scenario() -> None:
        queue = factories.queue()
        ack, retry, dead, discard, interrupt, give_back = claims(queue, 6, priority=2, max_attempts=2)
        assert (
            settle(
                Outcome(ack, Verdict.ACK, task="a.b", value='{"a":1}', ttl=60, duration_ms=12),
                Outcome(retry, Verdict.RETRY, delay=30, failure=NO, duration_ms=13),
                Outcome(dead, Verdict.DEAD, failure=NO, duration_ms=14),
                Outcome(discard, Verdict.DISCARD, task="a.b", failure=NO, ttl=None, duration_ms=15),
                Outcome(interrupt, Verdict.INTERRUPT, duration_ms=16),
                Outcome(give_back, Verdict.GIVE_BACK),
            )
            == []
        )
        run = Run.objects.get(pk=ack.id)
        assert (run.status, run.task, run.queue, run.payload) == ("succeeded", "a.b", queue.name, "1")
        assert (run.priority, run.attempts, run.max_attempts, run.worker_id) == (2, 1, 2, "w")
        assert (run.enqueued_at, run.started_at) == (ack.created_at, ack.claimed_at)
        assert (run.finished_at, run.expires_at, run.duration_ms) == (now(), now() + 60, 12)
        assert columns(ack.id, "value", "expires_at", model=Result) == ('{"a":1}', now() + 60)
        assert columns(retry.id, "state", "run_at", "attempts") == ("pending", now() + 30, 1)
        assert columns(dead.id, "last_error", "attempts", model=DeadJob) == ("no", 1)
        assert columns(discard.id, "status", "expires_at", model=Run) == ("failed", None)
        assert columns(interrupt.id, "state", "run_at", "attempts") == ("pending", now(), 1)
        assert columns(give_back.id, "state", "attempts") == ("pending", 0)
        told = Attempt.objects.filter(queue=queue.name).values_list("job_id", "kind", "duration_ms", "error")
        assert sorted(told) == [
            (retry.id, "failed", 13, "no"),
            (dead.id, "failed", 14, "no"),
            (discard.id, "failed", 15, "no"),
            (interrupt.id, "interrupted", 16, "interrupted: the worker was stopped while the task ran"),
        ]
        assert not Result.objects.filter(job_id__in=[retry.id, dead.id, discard.id]).exists()
        Job.objects.all().delete()

    within_a_second(scenario)


def test_lost_claims_are_returned_and_nothing_of_them_is_written(queue: Queue) -> None:
    found = claims(queue, 7)
    kept, lapsed, stolen, cancelled, reclaimed, pending, acked = found
    factories.lapse(lapsed.id)
    change(stolen.id, worker_id="another")
    assert queue.cancel(cancelled.id)
    change(reclaimed.id, attempts=2)
    change(pending.id, state="pending")
    Job.objects.filter(pk=acked.id).delete()
    lost = settle(
        Outcome(kept, Verdict.ACK, value="1"),
        Outcome(lapsed, Verdict.ACK, value="1"),
        Outcome(stolen, Verdict.RETRY, failure=NO),
        Outcome(cancelled, Verdict.DEAD, failure=NO),
        Outcome(reclaimed, Verdict.DISCARD, failure=NO),
        Outcome(pending, Verdict.INTERRUPT),
        Outcome(acked, Verdict.GIVE_BACK),
    )
    assert lost == found[1:]
    assert where(kept.id) == "run"
    assert set(Result.objects.values_list("job_id", flat=True)) == {kept.id}
    assert [history(claim.id) for claim in lost] == [[]] * 6
    assert [where(claim.id) for claim in lost] == ["live", "live", "run", "live", "live", ""]


def test_an_outcome_of_another_worker_is_lost(queue: Queue) -> None:
    (held,) = claims(queue, 1)
    assert turns.take("default", "another", [Outcome(held, Verdict.ACK)], [], 0) == Turn(lost=[held])
    assert where(held.id) == "live"


@pytest.mark.parametrize("verdict", Verdict)
def test_an_older_claim_of_the_same_worker_is_not_settled_by_the_present_one(
    queue: Queue, verdict: Verdict
) -> None:
    (older,) = claims(queue, 1)
    factories.lapse(older.id)
    present = turns.reclaim_one("default", "w", wish(queue))
    assert present is not None
    told = history(older.id)
    assert settle(Outcome(older, verdict, failure=NO), Outcome(present, Verdict.RETRY, failure=NO)) == [older]
    assert columns(older.id, "state", "attempts") == ("pending", 2)
    assert history(older.id) == [*told, ("failed", 1, 2)]


@pytest.mark.parametrize("verdict", Verdict)
def test_a_claim_may_end_in_the_very_turn_that_settles_it(queue: Queue, verdict: Verdict) -> None:
    """It was held when the turn locked it; what follows in the same transaction is not judged again."""
    (held,) = claims(queue, 1)
    jobs = Job.objects.db_manager("default")
    assert jobs.lock_held("w", [held.key]) == {held.key}
    factories.lapse(held.id)  # the clock, a second later
    settling._move("default", Outcome(held, verdict, failure=NO))
    if verdict in (Verdict.RETRY, Verdict.INTERRUPT, Verdict.GIVE_BACK):
        assert columns(held.id, "state", "worker_id") == ("pending", None)


def test_big_turns(queue: Queue) -> None:
    found = claims(queue, 450)
    outcomes = [
        Outcome(claim, Verdict.ACK if number % 3 else Verdict.RETRY, value="1", failure=NO, delay=60)
        for number, claim in enumerate(found)
    ]
    assert settle(*outcomes) == []
    assert Run.objects.filter(queue=queue.name).count() == 300
    assert Job.objects.filter(queue=queue.name, state="pending").count() == 150
    assert Attempt.objects.filter(queue=queue.name).count() == 150


def test_wishes_are_granted_in_their_order_as_far_as_there_is_room() -> None:
    first, second, third = factories.queue(), factories.queue(), factories.queue()
    for queue in (first, second, third):
        queue.enqueue_many(range(5))
    found = turns.take("default", "w", [], [wish(first, 2), wish(second, 99), wish(third, 99)], 6).claims
    assert [claim.queue for claim in found] == [first.name] * 2 + [second.name] * 4
    assert turns.take("default", "w", [], [wish(third)], 0).claims == []


def test_what_is_no_task_is_not_even_touched(queue: Queue) -> None:
    foreign = queue.enqueue({"to": 1}, priority=9)
    before = Job.objects.filter(pk=foreign).values().get()
    task = queue.enqueue(TASK)
    assert [claim.id for claim in turns.take("default", "w", [], [Wish(queue.name, 9, 60)], 9).claims] == [
        task
    ]
    assert Job.objects.filter(pk=foreign).values().get() == before
    change(foreign, state="processing", worker_id="x", claim_expires_at=at(-1), attempts=1)
    before = Job.objects.filter(pk=foreign).values().get()
    mine = Wish(queue.name, 9, 60)
    assert not turns.has_lapsed("default", [mine])
    assert turns.reclaim_one("default", "w", mine) is None
    assert Job.objects.filter(pk=foreign).values().get() == before
    assert turns.is_settled("default", [mine]) is False  # the task that was claimed above
    assert queue.cancel(task)
    assert turns.is_settled("default", [mine])
