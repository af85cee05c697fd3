"""A job put in by one side is the same job to the other."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.db import transaction

from alkstore_django.queues import Queue
from tests.interop import honker
from tests.interop.honker import HonkerProcess, HonkerQueue
from tests.interop.shared import SharedFile

LATER = 4_000_000_000

PAYLOADS = [
    {"to": "customer", "n": 1},
    {"deep": {"er": [1, 2.5, True, None, {"": []}]}},
    ["a", ["b"]],
    'é"\\x \U0001f600',
    "\x00 and \ud800",
    "",
    0,
    -(2**63),
    1e300,
    False,
    None,
    {},
]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"priority": 5},
    {"priority": -5, "max_attempts": 7},
    {"run_at": LATER},
    {"run_at": 0},
    {"delay": 30},
    {"delay": 0, "expires": 0},
    {"expires": 3600},
    {"run_at": LATER, "priority": 2**31 - 1, "expires": 1, "max_attempts": 1},
]

HAND_OVER = """
import honker, sys

database = honker.open(sys.argv[1])
emails = database.queue("emails")
for name in ("kept", "undone"):
    try:
        with database.transaction() as transaction:
            transaction.execute("INSERT INTO auth_group (name) VALUES (?)", [name])
            emails.enqueue({"group": name}, tx=transaction)
            if name == "undone":
                raise ValueError(name)
    except ValueError:
        pass
"""


def relative(row: dict[str, Any] | None) -> dict[str, Any]:
    """A row without its id, and with its times in seconds from its own creation."""
    assert row is not None
    row = {name: value for name, value in row.items() if name != "id"}
    for name in ("run_at", "expires_at"):
        if row[name] is not None and row[name] not in (0, LATER):
            row[name] -= row["created_at"]
    return row | {"created_at": 0, "payload": json.loads(row["payload"])}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_we_enqueue_and_the_row_is_the_one_that_honker_makes(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue, options: dict[str, Any]
) -> None:
    mine, its = ours.enqueue({"to": "customer"}, **options), theirs.enqueue({"to": "customer"}, **options)
    [many] = ours.enqueue_many([{"to": "customer"}], **options)
    expected = relative(shared.live(its))
    assert relative(shared.live(mine)) == expected
    assert relative(shared.live(many)) == expected


def test_we_enqueue_with_the_budget_of_the_queue_as_honker_does(
    shared: SharedFile, honker_process: HonkerProcess
) -> None:
    with honker_process.queue(shared.path, "emails", max_attempts=5) as theirs:
        its, mine = theirs.enqueue("a"), Queue("emails", max_attempts=5).enqueue("a")
    assert relative(shared.live(mine)) == relative(shared.live(its))


def test_we_enqueue_any_payload_and_honker_claims_it(ours: Queue, theirs: HonkerQueue) -> None:
    ids = ours.enqueue_many(PAYLOADS[:6]) + [ours.enqueue(payload) for payload in PAYLOADS[6:]]
    jobs = theirs.claim_batch("h", len(PAYLOADS) + 1)
    assert [(job["id"], job["payload"]) for job in jobs] == list(zip(ids, PAYLOADS, strict=True))


def test_honker_enqueues_any_payload_and_we_claim_it(ours: Queue, theirs: HonkerQueue) -> None:
    ids = [theirs.enqueue(payload) for payload in PAYLOADS]
    jobs = ours.claim_batch("us", len(PAYLOADS) + 1)
    assert [(job.id, job.payload) for job in jobs] == list(zip(ids, PAYLOADS, strict=True))


def test_both_enqueue_and_ids_never_collide(ours: Queue, theirs: HonkerQueue) -> None:
    ids = [side.enqueue(number) for number in range(10) for side in (ours, theirs)]
    assert ids == list(range(1, 21))


def test_we_roll_back_and_honker_never_sees_the_job(ours: Queue, theirs: HonkerQueue) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        ours.enqueue("undone")
        raise ZeroDivisionError
    with transaction.atomic():
        kept = ours.enqueue("kept")
    assert [job["id"] for job in theirs.claim_batch("h", 5)] == [kept]


def test_honker_enqueues_beside_a_row_of_the_project_and_we_see_both_or_neither(
    shared: SharedFile, ours: Queue
) -> None:
    honker.run(HAND_OVER, shared.path)
    assert shared.rows("SELECT name FROM auth_group") == [{"name": "kept"}]
    assert [job.payload for job in ours.claim_batch("us", 5)] == [{"group": "kept"}]


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_the_order_of_claim_is_one_for_jobs_of_both(ours: Queue, theirs: HonkerQueue, side: str) -> None:
    hour_ago = int(time.time()) - 3600
    put = [
        (ours, {"priority": 0}),
        (theirs, {"priority": 0}),
        (ours, {"priority": 9, "run_at": hour_ago + 2}),
        (theirs, {"priority": 9, "run_at": hour_ago}),
        (ours, {"priority": 9, "run_at": hour_ago}),
        (theirs, {"priority": 5}),
        (ours, {"priority": 99, "run_at": LATER}),
        (theirs, {"priority": 0, "run_at": hour_ago}),
        (ours, {"priority": -1, "run_at": 0}),
    ]
    ids = [queue.enqueue(None, **options) for queue, options in put]
    expected = [ids[index] for index in (3, 4, 2, 5, 7, 0, 1, 8)]
    if side == "ours":
        claimed = [job.id for job in ours.claim_batch("us", 99)]
    else:
        claimed = [theirs.claim_one("h")["id"] for _ in expected]  # honker's batches come in order of id
    assert claimed == expected


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_what_is_not_due_or_has_expired_is_claimed_by_nobody(
    ours: Queue, theirs: HonkerQueue, side: str
) -> None:
    other = theirs if side == "ours" else ours
    other.enqueue("later", delay=3600)
    other.enqueue("too late", expires=0)
    assert (ours.claim_batch("us", 5), theirs.claim_batch("h", 5)) == ([], [])


def test_both_say_the_same_moment_of_the_next_claim(
    shared: SharedFile, ours: Queue, theirs: HonkerQueue
) -> None:
    def both() -> int:
        assert ours.next_claim_at() == theirs._next_claim_at()
        return ours.next_claim_at()

    assert both() == 0
    first = ours.enqueue("due now")
    assert both() == 0
    theirs.enqueue("later", run_at=LATER)
    assert both() == LATER
    ours.enqueue("sooner, but expires before", run_at=LATER - 100, expires=0)
    assert both() == LATER
    assert theirs.claim_one("h")["id"] == first
    row = shared.live(first)
    assert row is not None
    assert both() == row["claim_expires_at"] + 1
