"""A claim of one side is respected by the other, to the second, and taken over when it has lapsed."""

from __future__ import annotations

import pytest

from alkstore_django.models import Attempt
from alkstore_django.queues import Queue
from tests.interop.honker import HonkerQueue
from tests.interop.shared import SharedFile


def test_we_claim_and_honker_leaves_the_job_to_us(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    job_id = theirs.enqueue({"to": "customer"})
    job = ours.claim_one("us")
    assert job is not None
    assert job.id == job_id
    assert theirs.claim_one("h") is None
    seen = theirs.get_job(job_id)
    expected = {"state": "processing", "worker_id": "us", "attempts": 1}
    assert {name: seen[name] for name in expected} == expected
    assert seen["claim_expires_at"] == job.claim_expires_at
    row = shared.live(job_id)
    assert row is not None
    assert row["claim_expires_at"] - row["claimed_at"] == 300, "honker's default, and ours for Queue"
    assert not theirs.ack(job_id, "h")
    assert not theirs.fail(job_id, "h", "no")
    assert not theirs.retry(job_id, "h", 0, "no")
    assert not theirs.heartbeat(job_id, "h")
    assert shared.live(job_id) == row


def test_honker_claims_and_we_leave_the_job_to_it(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    job_id = ours.enqueue({"to": "customer"})
    job = theirs.claim_one("h")
    assert job["id"] == job_id
    row = shared.live(job_id)
    assert ours.claim_one("us") is None
    assert ours.sweep_expired() == 0
    seen = ours.get_job(job_id)
    assert seen is not None
    assert (seen.state, seen.worker_id, seen.attempts) == ("processing", "h", 1)
    assert (seen.claim_expires_at, seen.claimed_at) == (job["claim_expires_at"], None)
    assert shared.live(job_id) == row


def test_each_claims_what_the_other_left(ours: Queue, theirs: HonkerQueue) -> None:
    ids = ours.enqueue_many(range(6))
    mine = [job.id for job in ours.claim_batch("us", 2)]
    its = [job["id"] for job in theirs.claim_batch("h", 2)]
    mine += [job.id for job in ours.claim_batch("us", 2)]
    assert (mine, its) == (ids[:2] + ids[4:], ids[2:4])


def test_our_claim_lapses_and_honker_takes_it_over(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    job_id = ours.enqueue("a")
    job = ours.claim_one("us")
    assert job is not None
    shared.lapse(job_id)
    assert theirs.claim_one("h")["attempts"] == 2
    row = shared.live(job_id)
    assert not ours.ack(job)
    assert ours.ack_batch([job]) == 0
    assert not ours.retry(job)
    assert not ours.fail(job, "no")
    assert not ours.heartbeat(job)
    assert not ours.release(job)
    assert not ours.release(job, started=True)
    assert shared.live(job_id) == row
    assert theirs.ack(job_id, "h")


def test_honker_takes_our_lapsed_claim_over_in_our_own_name_and_we_still_see_that_it_is_lost(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    ours.enqueue("a")
    job = ours.claim_one("same")
    assert job is not None
    shared.lapse(job.id)
    assert theirs.claim_one("same")["attempts"] == 2
    assert not ours.ack(job)
    assert not ours.fail(job)
    assert theirs.ack(job.id, "same")


def test_honkers_claim_lapses_and_we_take_it_over(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    job_id = theirs.enqueue("a")
    assert theirs.claim_one("h")["attempts"] == 1
    shared.lapse(job_id)
    job = ours.claim_one("us")
    assert job is not None
    assert (job.id, job.attempts) == (job_id, 2)
    row = shared.live(job_id)
    assert not theirs.ack(job_id, "h")
    assert theirs.ack_batch([job_id], "h") == 0
    assert not theirs.retry(job_id, "h", 0, "no")
    assert not theirs.fail(job_id, "h", "no")
    assert not theirs.heartbeat(job_id, "h")
    assert shared.live(job_id) == row
    history = Attempt.objects.filter(job_id=job_id).values_list("kind", "attempt", "worker_id", "started_at")
    assert list(history) == [("lost", 1, "h", None)]
    assert ours.ack(job)


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_claim_of_the_other_lapsed_on_the_last_attempt_and_the_job_is_dead(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue, side: str
) -> None:
    job_id = ours.enqueue("a", max_attempts=1)
    if side == "ours":
        assert theirs.claim_one("h") is not None
        shared.lapse(job_id)
        assert ours.claim_one("us") is None
    else:
        assert ours.claim_one("us") is not None
        shared.lapse(job_id)
        assert theirs.claim_one("h") is None
    assert shared.live(job_id) is None
    seen = ours.get_job(job_id)
    assert seen is not None
    assert (seen.state, seen.attempts) == ("dead", 1)
    assert seen.last_error is not None
    assert seen.last_error.startswith("max attempts exceeded")
    [row] = theirs.query("SELECT state, last_error FROM _honker_jobs")
    assert row == {"state": "dead", "last_error": seen.last_error}


@pytest.mark.parametrize("claimer", ["ours", "theirs"])
@pytest.mark.parametrize(
    ("column", "state", "offset", "claimed"),
    [
        ("run_at", "pending", 0, True),
        ("run_at", "pending", 1, False),
        ("expires_at", "pending", 0, False),
        ("expires_at", "pending", 1, True),
        ("claim_expires_at", "processing", 0, False),
        ("claim_expires_at", "processing", -1, True),
        ("expires_at", "processing", 0, False),
    ],
)
def test_both_agree_to_the_second_on_what_may_be_claimed(
    shared: SharedFile,
    ours: Queue,
    theirs: HonkerQueue,
    claimer: str,
    column: str,
    state: str,
    offset: int,
    claimed: bool,
) -> None:
    def claim() -> bool:
        shared.execute("DELETE FROM _honker_live")
        job_id = ours.enqueue("a")
        if state == "processing":
            assert ours.claim_one("somebody") is not None
            shared.lapse(job_id)
        shared.set(job_id, column, offset)
        return (ours.claim_one("us") if claimer == "ours" else theirs.claim_one("h")) is not None

    assert shared.within_a_second(claim) is claimed


@pytest.mark.parametrize("holder", ["ours", "theirs"])
@pytest.mark.parametrize("verb", ["ack", "retry", "fail", "heartbeat"])
@pytest.mark.parametrize(("offset", "held"), [(0, True), (-1, False)])
def test_both_agree_to_the_second_on_what_is_still_held(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue, holder: str, verb: str, offset: int, held: bool
) -> None:
    extra = {"retry": (0, "no"), "fail": ("no",)}.get(verb, ())

    def settle() -> bool:
        shared.execute("DELETE FROM _honker_live")
        job_id = ours.enqueue("a")
        job = ours.claim_one("w")
        shared.set(job_id, "claim_expires_at", offset)
        if holder == "ours":
            return bool(getattr(ours, verb)(job, *extra))
        return bool(getattr(theirs, verb)(job_id, "w", *extra))

    assert shared.within_a_second(settle) is held
