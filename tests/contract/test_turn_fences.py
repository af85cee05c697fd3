"""Each thing that a turn does by itself: the fence of every entry, what it writes, the order of choice.

Databases take a turn in one statement, in two, or step by step: it is always the same.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from alkstore_django import turns
from alkstore_django.models import Claim, Job
from alkstore_django.queues import Queue
from alkstore_django.turns import Outcome, Renewal, Turn, Verdict, Wish
from tests import factories
from tests.contract.clerk import claims, wish
from tests.factories import ask, at, change, columns, where, within_a_second

pytestmark = pytest.mark.django_db


def take(*outcomes: Outcome, renewals: list[Renewal] | None = None) -> Turn:
    return turns.take("default", "w", outcomes, [], 0, renewals or [])


EVERY_ENTRY = pytest.mark.parametrize("what", ["ack", "give back", "renew"])


def say(what: str, claim: Claim) -> Turn:
    if what == "renew":
        return take(renewals=[Renewal(claim, 600)])
    verdict = Verdict.ACK if what == "ack" else Verdict.GIVE_BACK
    return take(Outcome(claim, verdict, value="1"))


@EVERY_ENTRY
@pytest.mark.parametrize(
    "loss",
    [
        {"claim_expires_at": at(-1)},
        {"claim_expires_at": None},
        {"worker_id": "another"},
        {"worker_id": "W"},
        {"worker_id": None},
        {"attempts": 2},
        {"attempts": 0},
        {"state": "pending"},
    ],
    ids=str,
)
def test_each_part_of_the_fence(queue: Queue, what: str, loss: dict[str, Any]) -> None:
    (claim,) = claims(queue, 1)
    change(claim.id, **loss)
    before = Job.objects.filter(pk=claim.id).values().get()
    assert say(what, claim) == Turn(lost=[claim])
    assert Job.objects.filter(pk=claim.id).values().get() == before
    assert (where(claim.id), ask("SELECT count(*) FROM _honker_results")) == ("live", [(0,)])


@EVERY_ENTRY
def test_the_last_second_of_a_claim_counts(what: str) -> None:
    def scenario() -> None:
        queue = factories.queue()
        (claim,) = claims(queue, 1)
        change(claim.id, claim_expires_at=at(0))
        assert say(what, claim) == Turn()

    within_a_second(scenario)


@EVERY_ENTRY
def test_an_older_claim_is_lost_beside_the_present_one(queue: Queue, what: str) -> None:
    (older,) = claims(queue, 1)
    factories.lapse(older.id)
    present = turns.reclaim_one("default", "w", wish(queue))
    assert present is not None
    old = Outcome(older, Verdict.ACK, value="1")
    if what == "renew":
        assert take(old, renewals=[Renewal(present, 600)]) == Turn(lost=[older])
        assert columns(older.id, "state", "attempts") == ("processing", 2)
    else:
        verdict = Verdict.ACK if what == "ack" else Verdict.GIVE_BACK
        assert take(old, Outcome(present, verdict)) == Turn(lost=[older])
        assert where(older.id) == ("run" if what == "ack" else "live")


def test_what_a_renewal_and_a_claim_write() -> None:
    def scenario() -> None:
        queue, other = factories.queue(), factories.queue()
        first, second = claims(queue, 2)
        queue.enqueue(1)
        other.enqueue(2)
        wishes = [Wish(queue.name, 9, 30, tasks_only=False), Wish(other.name, 9, 40, tasks_only=False)]
        renewals = [Renewal(first, 100), Renewal(second, 200)]
        mine, others = turns.take("default", "w", [], wishes, 9, renewals).claims
        now = factories.now()
        for claim, visibility in ((first, 100), (second, 200), (mine, 30), (others, 40)):
            stored = columns(claim.id, "state", "worker_id", "attempts", "claimed_at", "claim_expires_at")
            assert stored == ("processing", "w", 1, now, now + visibility)
        assert (mine.claim_expires_at, mine.claimed_at, mine.attempts) == (now + 30, now, 1)

    within_a_second(scenario)


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_choice_over_several_queues(seed: int) -> None:
    rng = random.Random(seed)
    queues = [factories.queue() for _ in range(3)]
    for _ in range(150):
        queue = rng.choice(queues)
        row = {"priority": rng.randrange(rng.choice([1, 4])), "run_at": at(rng.choice([*range(-9, 0), 1000]))}
        factories.live(queue.name, "1", **row, attempts=rng.choice([0, 0, 3]))
    expected = [
        job_id
        for queue in queues
        for job_id in Job.objects.filter(queue=queue.name, run_at__lte=at(0), attempts=0)
        .order_by("-priority", "run_at", "id")
        .values_list("pk", flat=True)
    ]
    found: list[int] = []
    while more := turns.take("default", "w", [], [wish(each, 7) for each in queues], 10).claims:
        found += [claim.id for claim in more]
        by_queue = [[each for each in more if each.queue == queue.name] for queue in queues]
        assert more == [claim for some in by_queue for claim in some]
    for queue in queues:
        mine = set(Job.objects.filter(queue=queue.name).values_list("pk", flat=True))
        assert [each for each in found if each in mine] == [each for each in expected if each in mine]
