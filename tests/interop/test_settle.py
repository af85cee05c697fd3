"""What one side makes of a claim is what the other finds."""

from __future__ import annotations

from typing import Any

import pytest

from alkstore_django.claims import ClaimedJob
from alkstore_django.models import Attempt
from alkstore_django.queues import Queue
from tests.interop.honker import HonkerQueue
from tests.interop.shared import SharedFile

ERRORS = ["boom", "", 'ValueError: "é" \U0001f600\nTraceback:\n  line 1']


def claimed(ours: Queue, **options: Any) -> ClaimedJob:
    """A fresh job that we hold as ``w``: honker, which knows no other fence, may settle it as ``w`` too."""
    ours.enqueue({"to": "customer"}, **options)
    job = ours.claim_one("w")
    assert job is not None
    return job


def dead(shared: SharedFile, job_id: int) -> dict[str, Any]:
    """A dead letter without what differs from job to job."""
    row = shared.dead(job_id)
    assert row is not None
    assert 0 <= row["died_at"] - row["created_at"] <= 60
    assert shared.live(job_id) is None
    return {name: row[name] for name in row if name not in ("id", "run_at", "created_at", "died_at")}


def test_we_ack_and_honker_finds_nothing(ours: Queue, theirs: HonkerQueue) -> None:
    job_id = theirs.enqueue("a")
    job = ours.claim_one("w")
    assert job is not None
    assert ours.ack(job)
    assert theirs.get_job(job_id) is None
    assert not theirs.ack(job_id, "w")
    assert theirs.query("SELECT * FROM _honker_jobs") == []


def test_honker_acks_and_we_find_nothing(ours: Queue, theirs: HonkerQueue) -> None:
    job = claimed(ours)
    assert theirs.ack(job.id, "w")
    assert not ours.ack(job)
    assert ours.get_job(job.id) is None
    assert not ours.cancel(job.id)


def test_each_acks_a_batch_with_claims_of_the_other_in_it(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    ours.enqueue_many(range(6))
    mine = ours.claim_batch("us", 3)
    its = [job["id"] for job in theirs.claim_batch("h", 3)]
    assert theirs.ack_batch([job.id for job in mine] + its[:1] * 2, "h") == 1
    assert theirs.ack(mine[0].id, "us")
    assert ours.ack_batch(mine) == 2
    assert [row["id"] for row in shared.rows("SELECT id FROM _honker_live")] == its[1:]


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_one_retries_and_the_other_claims_it_when_it_is_due(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue, side: str
) -> None:
    job = claimed(ours, expires=3600)
    before = shared.live(job.id)
    assert ours.retry(job, 60, "boom") if side == "ours" else theirs.retry(job.id, "w", 60, "boom")
    after = shared.live(job.id)
    assert before is not None
    assert after is not None
    assert 60 <= after["run_at"] - before["run_at"] <= 90
    put_back = {"state": "pending", "worker_id": None, "claim_expires_at": None, "run_at": after["run_at"]}
    if side == "ours":
        put_back["claimed_at"] = None  # honker leaves it, and does not write it when it claims
    assert after == before | put_back
    assert (ours.claim_one("us"), theirs.claim_one("h")) == (None, None)
    shared.set(job.id, "run_at", 0)
    if side == "ours":
        assert theirs.claim_one("h")["attempts"] == 2
    else:
        again = ours.claim_one("us")
        assert again is not None
        assert again.attempts == 2


@pytest.mark.parametrize("error", ERRORS)
def test_both_fail_jobs_and_the_dead_letters_are_alike(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue, error: str
) -> None:
    mine, its = claimed(ours, priority=3), claimed(ours, priority=3)
    assert ours.fail(mine, error)
    assert theirs.fail(its.id, "w", error)
    assert dead(shared, mine.id) == dead(shared, its.id)
    assert [row["last_error"] for row in theirs.query("SELECT last_error FROM _honker_jobs")] == [error] * 2
    for job in (mine, its):
        seen = ours.get_job(job.id)
        assert seen is not None
        assert (seen.state, seen.last_error, seen.attempts) == ("dead", error, 1)


def test_both_retry_the_last_attempt_and_the_dead_letters_are_alike(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    mine, its = claimed(ours, max_attempts=1), claimed(ours, max_attempts=1)
    assert ours.retry(mine, 60, "boom")
    assert theirs.retry(its.id, "w", 60, "boom")
    assert dead(shared, mine.id) == dead(shared, its.id)


def test_we_fail_with_an_exception_and_honker_reads_message_and_traceback(
    ours: Queue, theirs: HonkerQueue
) -> None:
    job = claimed(ours)
    try:
        raise ValueError("no such address")
    except ValueError as error:
        assert ours.fail(job, error)
    [row] = theirs.query("SELECT last_error FROM _honker_jobs")
    first, second, *_, last = row["last_error"].splitlines()
    assert (first, second) == ("no such address", "Traceback (most recent call last):")
    assert last == "ValueError: no such address"


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_one_sends_a_heartbeat_and_the_other_sees_the_longer_claim(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue, side: str
) -> None:
    job = claimed(ours)
    shared.set(job.id, "claim_expires_at", 5)
    before = shared.live(job.id)
    assert ours.heartbeat(job, 1000) if side == "ours" else theirs.heartbeat(job.id, "w", 1000)
    after = shared.live(job.id)
    assert before is not None
    assert after is not None
    assert 995 <= after["claim_expires_at"] - before["claim_expires_at"] <= 1030
    assert after == before | {"claim_expires_at": after["claim_expires_at"]}
    assert theirs.get_job(job.id)["claim_expires_at"] == after["claim_expires_at"]
    seen = ours.get_job(job.id)
    assert seen is not None
    assert seen.claim_expires_at == after["claim_expires_at"]
    assert (ours.claim_one("us"), theirs.claim_one("h")) == (None, None)


@pytest.mark.parametrize("started", [False, True])
def test_we_release_and_honker_claims_at_once(ours: Queue, theirs: HonkerQueue, started: bool) -> None:
    job = claimed(ours)
    assert ours.release(job, started=started)
    assert theirs.claim_one("h")["attempts"] == 1 + started


def test_a_dead_letter_of_honkers_is_requeued_by_us_and_claimed_by_honker_again(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    job_id = theirs.enqueue({"to": "customer"}, priority=4, max_attempts=2)
    theirs.claim_one("h")
    assert theirs.fail(job_id, "h", "no")
    assert ours.requeue([job_id]) == 1
    assert shared.dead(job_id) is None
    job = theirs.claim_one("h")
    assert (job["id"], job["payload"], job["attempts"]) == (job_id, {"to": "customer"}, 1)
    row = theirs.get_job(job_id)
    assert (row["priority"], row["max_attempts"], row["expires_at"]) == (4, 2, None)
    assert theirs.fail(job_id, "h", "no again")
    assert dead(shared, job_id)["last_error"] == "no again"
    assert list(Attempt.objects.values_list("job_id", "kind", "life")) == [(job_id, "requeued", 2)]


def test_the_id_of_our_job_is_taken_among_honkers_dead_letters_and_it_dies_all_the_same(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    job = claimed(ours)
    shared.execute(
        "INSERT INTO _honker_dead (id, queue, payload, last_error) VALUES (%s, 'emails', '1', 'older')",
        job.id,
    )
    assert ours.fail(job, "newer")
    found = theirs.query("SELECT id, last_error FROM _honker_jobs ORDER BY id")
    assert found == [{"id": job.id, "last_error": "older"}, {"id": job.id + 1, "last_error": "newer"}]
    assert theirs.enqueue("next") == job.id + 2
