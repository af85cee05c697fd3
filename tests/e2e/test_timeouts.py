"""``@task(timeout=...)``: an attempt that takes too long ends, or its process does."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from alkstore_django.models import Attempt, Job
from alkstore_django.runtime import exits
from tests.app import limits, tasks
from tests.e2e.test_outcomes import error_classes, outcome, work
from tests.processes import Journal, Workers
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

TOLD = "ran longer than its timeout of 0.2 s"


@pytest.mark.parametrize(
    "task", [limits.overrun, limits.overrun_async, limits.overrun_with_another_reason_to_retry]
)
def test_a_timeout_is_a_failed_attempt(task: Any) -> None:
    result = outcome(task)
    assert error_classes(result) == ["TaskTimedOut"] * 2
    assert {error.exception_class.__name__ for error in result.errors} == {"TaskTimedOut"}
    assert history(int(result.id)) == ["failed", "failed"]
    assert TOLD in dead()[int(result.id)]
    where = "in spin" if task is not limits.overrun_async else "asyncio.sleep(3600)"
    assert where in result.errors[0].traceback


def test_no_retry_holds(journal: Journal) -> None:
    result = outcome(limits.overrun_once)
    assert error_classes(result) == ["TaskTimedOut"]
    assert set(dead()) == {int(result.id)}


@pytest.mark.parametrize("task", [limits.tidy_up, limits.tidy_up_async])
def test_who_catches_it_has_failed_all_the_same(journal: Journal, task: Any) -> None:
    result = outcome(task, journal.path)
    assert error_classes(result) == ["TaskTimedOut"] * 2
    assert journal.lines == ["tidied up"] * 2


def test_the_task_may_decide_from_inside() -> None:
    assert error_classes(outcome(limits.discard_when_late)) == ["Discard"]
    assert error_classes(outcome(limits.retry_when_late)) == ["Retry"] * 2


def test_what_it_raises_then_is_only_the_consequence() -> None:
    result = outcome(limits.fail_differently)
    assert error_classes(result) == ["TaskTimedOut"] * 2
    assert "KeyError: 'in the middle'" in result.errors[0].traceback


@pytest.mark.parametrize("task", [limits.in_time, limits.in_time_async])
def test_in_time(task: Any) -> None:
    results = [task.enqueue(n) for n in range(20)]
    work()
    for n, result in enumerate(results):
        result.refresh()
        assert result.return_value == n


def test_a_timeout_hits_no_other_task() -> None:
    """However close to its end a task is: the next one on the thread, without a timeout, is never hit."""
    chance = random.Random(4)
    with transaction.atomic():
        late = {int(limits.nearly.enqueue(chance.uniform(0.015, 0.025)).id) for _ in range(60)}
        others = {int(tasks.add.enqueue(1, n).id) for n in range(60)}
    work()
    assert others <= succeeded()
    assert late == (late & succeeded()) | set(dead())
    assert all(TOLD.replace("0.2", "0.02") in error for error in dead().values())
    assert not [each for each in threading.enumerate() if each.name.startswith("alkworker")]


STUCK = [limits.stick, limits.block_in_c, limits.stick_async, limits.block_the_loop]


@pytest.mark.parametrize("task", STUCK)
def test_what_does_not_end_ends_with_its_process(
    workers: Workers, journal: Journal, gate: Path, task: Any
) -> None:
    """Its claim is held meanwhile, nothing new is claimed, what else runs comes to its end."""
    holding = int(tasks.hold.enqueue(journal.path, "held", str(gate)).id)
    job_id = int(task.enqueue(journal.path, "/nowhere").id)
    worker = workers.start("--visibility-timeout", 3)
    workers.wait_until(lambda: {"start held", "start stuck"} <= set(journal.lines), "both run")
    worker.wait_for("makes room for another: a task goes on although its time is over")
    later = int(tasks.add.enqueue(1, 2).id)
    claimed_until = Job.objects.get(pk=job_id).claim_expires_at
    assert claimed_until is not None
    workers.wait_until(lambda: live(id=job_id, claim_expires_at__gt=claimed_until), "its claim is renewed")
    assert worker.is_running and live(id=later, state="pending", attempts=0)
    gate.touch()

    assert worker.join() == exits.STUCK == 70
    assert succeeded() == {holding}
    assert live(id=later, state="pending", attempts=0) == 1
    assert live(id=job_id, state="pending", attempts=1) == 1
    attempt = Attempt.objects.get()
    assert (attempt.kind, attempt.error_class) == ("failed", "alkstore_django.exceptions.TaskTimedOut")
    assert f"{TOLD} and did not end 5 s later" in attempt.error
    assert task.func.__name__ in attempt.traceback
    assert Job.objects.get(pk=job_id).run_at - Job.objects.get(pk=later).run_at > 500


def test_a_stop_does_not_wait_for_what_is_stuck(workers: Workers, journal: Journal) -> None:
    job_id = int(limits.block_in_c.enqueue(journal.path, "/nowhere").id)
    worker = workers.start("--shutdown-timeout", 0)
    workers.wait_until(lambda: journal.lines == ["start stuck"], "it runs")
    assert worker.stop() in (exits.FAILED, exits.STUCK)
    assert live(id=job_id, state="pending") == 1
    assert history(job_id) in (["interrupted"], ["failed"])
