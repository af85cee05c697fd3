"""What a worker does between its turns: reclaim, renew, look whether there is anything to do."""

from __future__ import annotations

from typing import Any

import pytest

from alkstore_django import turns
from alkstore_django.failures import Failure
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.turns import Outcome, Verdict
from tests import factories
from tests.contract.clerk import NO, claims, settle, wish
from tests.factories import at, change, columns, history, now, where, within_a_second

pytestmark = pytest.mark.django_db


def test_reclaim_is_one_at_a_time_and_spends_an_attempt(queue: Queue) -> None:
    ids = [factories.claimed(queue.name, claim_expires_at=at(-9 + number), attempts=1) for number in range(3)]
    assert turns.has_lapsed("default", [wish(queue)])
    found = [turns.reclaim_one("default", "w", wish(queue)) for _ in range(4)]
    assert [claim and (claim.id, claim.attempts, claim.worker_id) for claim in found] == [
        *((job_id, 2, "w") for job_id in ids),
        None,
    ]
    assert not turns.has_lapsed("default", [wish(queue)])
    assert [history(job_id) for job_id in ids] == [[("lost", 1, 1)]] * 3


def test_reclaim_buries_what_has_no_future(queue: Queue) -> None:
    hopeless = [
        factories.claimed(queue.name, claim_expires_at=at(-9), attempts=3),
        factories.claimed(queue.name, claim_expires_at=at(-9), expires_at=at(-1)),
    ]
    again = factories.claimed(queue.name, claim_expires_at=at(-1), attempts=2)
    claim = turns.reclaim_one("default", "w", wish(queue))
    assert claim is not None
    assert (claim.id, claim.attempts) == (again, 3)
    assert [where(job_id) for job_id in hopeless] == ["dead", "dead"]


def test_reclaim_leaves_claims_that_are_held(queue: Queue) -> None:
    def scenario() -> None:
        queue = factories.queue()
        factories.claimed(queue.name, claim_expires_at=at(0))
        assert turns.reclaim_one("default", "w", wish(queue)) is None
        assert not turns.has_lapsed("default", [wish(queue)])

    within_a_second(scenario)


def test_renew() -> None:
    def scenario() -> None:
        queue = factories.queue()
        held, boundary, lapsed, stolen = claims(queue, 4)
        change(boundary.id, claim_expires_at=at(0))
        factories.lapse(lapsed.id)
        change(stolen.id, worker_id="another")
        assert turns.renew("default", "w", [held, boundary], 77) == []
        assert turns.renew("default", "w", [held, boundary, lapsed, stolen], 90) == [lapsed, stolen]
        assert (
            columns(held.id, "claim_expires_at") == columns(boundary.id, "claim_expires_at") == (now() + 90,)
        )
        assert columns(lapsed.id, "claim_expires_at") == (now() - 1,)
        assert turns.renew("default", "w", [], 90) == []
        Job.objects.all().delete()

    within_a_second(scenario)


def test_what_a_worker_holds_according_to_the_database(queue: Queue) -> None:
    other = factories.queue()
    held, lapsed = claims(queue, 2)
    (elsewhere,) = claims(other, 1)
    factories.lapse(lapsed.id)
    factories.claimed(queue.name)
    assert [claim.key for claim in turns.held_by("default", "w", [queue.name])] == [held.key]
    both = turns.held_by("default", "w", [queue.name, other.name])
    assert {claim.key for claim in both} == {held.key, elsewhere.key}


@pytest.mark.parametrize(
    ("row", "settled"),
    [
        ({}, False),
        ({"run_at": at(60)}, True),
        ({"run_at": at(60), "attempts": 1}, False),
        ({"state": "processing", "claim_expires_at": at(60), "attempts": 1}, False),
        ({"state": "processing", "claim_expires_at": at(-60), "attempts": 1}, False),
    ],
    ids=str,
)
def test_what_a_draining_worker_waits_for(queue: Queue, row: Any, settled: bool) -> None:
    assert turns.is_settled("default", [wish(queue)])
    factories.live(queue.name, **row)
    assert turns.is_settled("default", [wish(queue)]) == settled


def test_the_history_of_claims_that_are_not_their_first(queue: Queue) -> None:
    first, second = claims(queue, 2)
    settle(Outcome(second, Verdict.RETRY, failure=NO))
    (again,) = turns.take("default", "w", [], [wish(queue)], 5).claims
    found = turns.history("default", [first, again])
    assert [row.error for row in found[again.id]] == ["no"]
    assert first.id not in found
    assert turns.history("default", []) == {}


def test_lives_are_counted(queue: Queue) -> None:
    (held,) = claims(queue, 1)
    settle(Outcome(held, Verdict.DEAD, failure=NO))
    assert queue.requeue([held.id]) == 1
    (held,) = turns.take("default", "w", [], [wish(queue)], 5).claims
    settle(Outcome(held, Verdict.RETRY, failure=Failure("a.B", "text", "trace")))
    assert history(held.id) == [("failed", 1, 1), ("requeued", 2, None), ("failed", 2, 1)]
