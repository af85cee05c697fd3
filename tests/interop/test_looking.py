"""Looking a job up, cancelling it, sweeping it, keeping its result: one side does it, the other sees it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from alkstore_django import queues
from alkstore_django.models import Result
from alkstore_django.queues import Queue
from tests.interop.honker import HonkerQueue
from tests.interop.shared import SharedFile


@pytest.mark.parametrize("enqueuer", ["ours", "theirs"])
@pytest.mark.parametrize("claimer", [None, "ours", "theirs"])
def test_both_look_a_job_up_and_see_the_same(
    ours: Queue, theirs: HonkerQueue, enqueuer: str, claimer: str | None
) -> None:
    side = ours if enqueuer == "ours" else theirs
    job_id = side.enqueue({"to": "é"}, priority=3, expires=3600, max_attempts=7)
    if claimer is not None:
        assert (ours if claimer == "ours" else theirs).claim_one("w") is not None
    seen = theirs.get_job(job_id)
    assert len(seen) == 12
    for info in (ours.get_job(job_id), queues.get_job(job_id)):
        assert info is not None
        found = asdict(info) | {"payload": info.raw_payload}
        assert {name: found[name] for name in seen} == seen
        assert info.payload == {"to": "é"}


def test_what_nobody_has_is_found_by_neither(ours: Queue, theirs: HonkerQueue) -> None:
    assert (ours.get_job(1), theirs.get_job(1)) == (None, None)
    assert (ours.cancel(1), theirs.cancel(1)) == (False, False)


@pytest.mark.parametrize("is_claimed", [False, True])
def test_we_cancel_and_honker_has_lost_the_job(ours: Queue, theirs: HonkerQueue, is_claimed: bool) -> None:
    job_id = theirs.enqueue("a")
    if is_claimed:
        theirs.claim_one("h")
    assert ours.cancel(job_id)
    assert theirs.get_job(job_id) is None
    assert theirs.claim_one("h") is None
    assert not theirs.ack(job_id, "h")
    assert not theirs.cancel(job_id)
    seen = ours.get_job(job_id)
    assert seen is not None
    assert (seen.state, seen.worker_id) == ("cancelled", "h" if is_claimed else None)


@pytest.mark.parametrize("is_claimed", [False, True])
def test_honker_cancels_and_we_have_lost_the_job(ours: Queue, theirs: HonkerQueue, is_claimed: bool) -> None:
    job_id = ours.enqueue("a")
    job = ours.claim_one("us") if is_claimed else None
    assert theirs.cancel(job_id)
    assert job is None or not ours.ack(job)
    assert ours.claim_one("us") is None
    assert not ours.cancel(job_id)
    assert ours.get_job(job_id) is None


def swept(shared: SharedFile, job_id: int) -> dict[str, Any]:
    row = shared.dead(job_id)
    assert row is not None
    assert shared.live(job_id) is None
    return {name: row[name] for name in row if name not in ("id", "run_at", "created_at", "died_at")}


def test_both_sweep_expired_jobs_of_the_other_and_the_dead_letters_are_alike(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    its = theirs.enqueue("a", expires=0, priority=2)
    assert ours.sweep_expired() == 1
    mine = ours.enqueue("a", expires=0, priority=2)
    assert theirs.sweep_expired() == 1
    assert swept(shared, its) == swept(shared, mine)
    assert swept(shared, its)["last_error"] == "expired"
    assert (ours.sweep_expired(), theirs.sweep_expired()) == (0, 0)


def test_neither_sweeps_what_runs_or_has_not_expired(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    running, waiting = ours.enqueue("a", expires=3600, priority=1), theirs.enqueue("b", expires=3600)
    assert theirs.claim_one("h")["id"] == running
    shared.set(running, "expires_at", -1)
    assert (ours.sweep_expired(), theirs.sweep_expired()) == (0, 0)
    assert [row["id"] for row in theirs.query("SELECT id FROM _honker_jobs")] == [running, waiting]


def test_a_job_of_honkers_expired_while_its_claim_lapsed_and_only_our_sweep_ends_it(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    job_id = theirs.enqueue("a", expires=3600)
    theirs.claim_one("h")
    shared.set(job_id, "expires_at", -1)
    shared.lapse(job_id)
    assert (theirs.sweep_expired(), theirs.claim_one("h")) == (0, None)  # honker-spec 7, D2
    assert ours.sweep_expired() == 1
    assert swept(shared, job_id)["last_error"] == "expired"


@pytest.mark.parametrize("value", [{"r": [1, 2]}, None, "é\x00", 2.5, []])
def test_honker_saves_a_result_and_we_read_it(ours: Queue, theirs: HonkerQueue, value: object) -> None:
    job_id = ours.enqueue("a")
    theirs.save_result(job_id, value, ttl=60)
    stored = Result.objects.value(job_id)
    assert stored is not None
    assert json.loads(stored) == value


@pytest.mark.parametrize("saver", ["ours", "theirs"])
@pytest.mark.parametrize(("offset", "is_there"), [(1, True), (0, False)])
def test_a_result_is_gone_for_both_at_its_last_second(
    shared: SharedFile, theirs: HonkerQueue, saver: str, offset: int, is_there: bool
) -> None:
    if saver == "ours":
        Result.objects.save([(7, '{"r":1}', 60)])
    else:
        theirs.save_result(7, {"r": 1}, ttl=60)
    assert theirs.get_result(7) == [True, {"r": 1}]

    def look() -> tuple[bool, bool]:
        shared.execute("UPDATE _honker_results SET expires_at = unixepoch() + %s", offset)
        return Result.objects.value(7) is not None, theirs.get_result(7)[0]

    assert shared.within_a_second(look) == (is_there, is_there)


def test_we_save_a_result_over_honkers_and_the_first_date_stays(
    shared: SharedFile, theirs: HonkerQueue
) -> None:
    theirs.save_result(7, "first", ttl=60)
    shared.execute("UPDATE _honker_results SET created_at = 1000")
    Result.objects.save([(7, '"second"', None)])
    assert theirs.get_result(7) == [True, "second"]
    assert shared.rows("SELECT created_at, expires_at FROM _honker_results") == [
        {"created_at": 1000, "expires_at": None}
    ]
    theirs.save_result(7, "third")
    stored = Result.objects.value(7)
    assert stored is not None
    assert json.loads(stored) == "third"
    assert shared.rows("SELECT created_at FROM _honker_results") == [{"created_at": 1000}]
