from __future__ import annotations

import pytest

from alkstore_django import queues
from alkstore_django.models import Attempt, DeadJob
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import columns, history, live, now, where, within_a_second

pytestmark = pytest.mark.django_db


def bury(queue: Queue, payload: object = 1) -> int:
    job_id = queue.enqueue(payload, max_attempts=2, priority=4)
    job = queue.claim_one("w")
    assert job is not None
    assert queue.fail(job, "no")
    return job_id


def test_a_new_life_under_the_same_id() -> None:
    def scenario() -> None:
        queue = factories.queue()
        job_id = bury(queue, {"to": "é"})
        created_at = columns(job_id, "created_at", model=DeadJob)[0]
        assert queues.requeue([job_id]) == {job_id: job_id}
        assert where(job_id) == "live"
        assert columns(job_id, "state", "attempts", "max_attempts", "priority", "run_at", "created_at") == (
            "pending",
            0,
            2,
            4,
            now(),
            created_at,
        )
        assert columns(job_id, "worker_id", "claim_expires_at", "expires_at", "claimed_at") == (None,) * 4
        job = queue.claim_one("w")
        assert job is not None
        assert (job.id, job.payload, job.attempts) == (job_id, {"to": "é"}, 1)
        assert queue.ack(job)

    within_a_second(scenario)


def test_the_history_is_kept_and_lives_are_counted(queue: Queue) -> None:
    job_id = bury(queue)
    for life in (1, 2, 3):
        assert queue.requeue([job_id]) == 1
        job = queue.claim_one("w")
        assert job is not None
        assert queue.fail(job, f"life {life + 1}")
    assert history(job_id) == [
        ("failed", 1, 1),
        ("requeued", 2, None),
        ("failed", 2, 1),
        ("requeued", 3, None),
        ("failed", 3, 1),
        ("requeued", 4, None),
        ("failed", 4, 1),
    ]
    present = Attempt.objects.present_life([job_id, 2**50])
    assert [(row.kind, row.error) for row in present[job_id]] == [("failed", "life 4")]
    assert Attempt.objects.lives([job_id, 2**50]) == {job_id: 4}


def test_what_was_there_is_counted(queue: Queue) -> None:
    ids = [bury(queue), bury(queue)]
    waiting = queue.enqueue("not dead")
    assert queue.requeue([*ids, ids[0], waiting, 2**50, -1]) == 2
    assert queue.requeue(ids) == 0
    assert queue.requeue(iter(())) == 0


def test_of_this_queue_only(queue: Queue) -> None:
    other = factories.queue()
    job_id = bury(other)
    assert queue.requeue([job_id]) == 0
    assert where(job_id) == "dead"
    assert other.requeue([job_id]) == 1


@pytest.mark.parametrize(("stored", "budget"), [(0, 1), (-3, 1), (1, 1), (9, 9)])
def test_a_budget_of_at_least_one(queue: Queue, stored: int, budget: int) -> None:
    """honker's dead letters of old files have 0."""
    job_id = factories.dead(2**40, queue.name, max_attempts=stored)
    assert queue.requeue([job_id]) == 1
    assert columns(job_id, "max_attempts") == (budget,)
    assert queue.claim_one("w") is not None


def test_an_id_that_a_live_job_has_by_now(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    taken = live(queue.name, '"the other"')
    factories.dead(taken, queue.name, '"the dead"')
    highest = factories.result(taken + 1_000_000)
    revived = queues.requeue([taken])
    new_id = revived[taken]
    assert new_id > highest
    assert columns(taken, "payload") == ('"the other"',)
    assert columns(new_id, "payload", "attempts") == ('"the dead"', 0)
    assert (where(taken), where(new_id)) == ("live", "live")
    events = ("job_id", "kind", "other_id")
    assert set(Attempt.objects.filter(job_id__in=[taken, new_id]).values_list(*events)) == {
        (taken, "renumbered", new_id),
        (new_id, "renumbered", taken),
        (new_id, "requeued", None),
    }
    assert queue.enqueue("later") > new_id
    assert f"Job id={taken} is now id={new_id}" in caplog.text


def test_dead_letters_of_other_programs(queue: Queue) -> None:
    job_id = factories.dead(2**40, "any  name\n", "not json", last_error=None, max_attempts=2)
    assert queues.requeue([job_id]) == {job_id: job_id}
    assert columns(job_id, "queue", "payload") == ("any  name\n", "not json")
    assert history(job_id) == [("requeued", 2, None)]
