"""What a running task is told by its context, and what it can ask for."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from alkstore_django.models import Job
from alkstore_django.queues import cancel
from alkstore_django.runtime import exits
from tests import factories
from tests.app import contextual
from tests.e2e.test_outcomes import error_classes, outcome
from tests.e2e.test_stop import STOPS, interrupted
from tests.processes import Journal, Workers
from tests.queue_state import dead, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

RARELY = ("--visibility-timeout", 3600)
"""Claims are renewed after 20 minutes, so that no renewal finds what the tests wait for."""


@pytest.mark.parametrize("task", [contextual.tell, contextual.tell_async])
def test_what_it_knows(task: Any) -> None:
    result = outcome(task)
    assert result.return_value == [int(result.id), 1, False, True]


def test_a_cancelled_job_is_told_to_its_task(workers: Workers, journal: Journal) -> None:
    job_id = int(contextual.watch_out.enqueue(journal.path).id)
    worker = workers.start(*RARELY)
    workers.wait_until(lambda: journal.lines == ["start"], "it runs")
    assert cancel(job_id)
    workers.wait_until(lambda: journal.lines == ["start", "cancelled, held: False"], "it was told")
    assert worker.stop() == 0
    assert not live() and not succeeded() and not dead()


def test_a_lost_claim_is_told_to_its_task(workers: Workers, journal: Journal) -> None:
    """Nothing that it does then counts."""
    job_id = int(contextual.watch_out.enqueue(journal.path).id)
    worker = workers.start(*RARELY)
    workers.wait_until(lambda: journal.lines == ["start"], "it runs")
    factories.change(job_id, worker_id="another", attempts=2, claim_expires_at=factories.at(60))
    workers.wait_until(lambda: journal.lines == ["start", "cancelled, held: False"], "it was told")
    assert worker.stop() == 0
    assert live(id=job_id, worker_id="another", state="processing") == 1


def test_a_coroutine_is_cancelled_with_its_job(workers: Workers, journal: Journal) -> None:
    job_id = int(contextual.wait_for_cancellation.enqueue(journal.path).id)
    worker = workers.start(*RARELY)
    workers.wait_until(lambda: journal.lines == ["start"], "it runs")
    assert cancel(job_id)
    workers.wait_until(lambda: journal.lines == ["start", "cancelled"], "it was cancelled")
    assert worker.stop() == 0
    assert not live() and not dead()


def test_a_stop_is_told_and_the_task_may_finish(workers: Workers, journal: Journal) -> None:
    job_id = int(contextual.watch_out.enqueue(journal.path).id)
    worker = workers.start()
    workers.wait_until(lambda: journal.lines == ["start"], "it runs")
    worker.send(signal.SIGTERM)
    worker.wait_for(STOPS)
    assert worker.join() == exits.DONE
    assert journal.lines == ["start", "cancelled, held: True"]
    assert succeeded() == {job_id}


def test_a_task_may_leave_at_a_stop(workers: Workers, journal: Journal) -> None:
    """Long before the end of the grace, and its only attempt is not spent."""
    job_id = int(contextual.leave_when_cancelled.enqueue(journal.path).id)
    worker = workers.start("--shutdown-timeout", 1000)
    workers.wait_until(lambda: journal.lines == ["start"], "it runs")
    worker.send(signal.SIGTERM)
    interrupted(worker, job_id, 0)


def test_to_leave_for_no_reason_is_a_failure() -> None:
    result = outcome(contextual.leave_for_no_reason.using(max_attempts=1))
    assert error_classes(result) == ["TaskInterrupted"]


def test_a_long_claim(workers: Workers, journal: Journal, gate: Path) -> None:
    """Also while the task's own transaction is open, which on SQLite keeps everybody from writing."""
    job_id = int(contextual.hold_long.enqueue(journal.path, str(gate)).id)
    worker = workers.start("--visibility-timeout", 9)
    workers.wait_until(lambda: journal.lines == ["held: True"], "it has asked")
    workers.wait_until(
        lambda: live(id=job_id, claim_expires_at__gt=factories.now() + 900), "the claim is a long one"
    )
    gate.touch()
    workers.wait_until(lambda: job_id in succeeded(), "it is done")
    assert worker.stop() == 0
    assert not Job.objects.exists()


def test_no_heartbeat_in_the_loop() -> None:
    result = outcome(contextual.heartbeat_in_the_loop.using(max_attempts=1))
    assert error_classes(result) == ["SynchronousOnlyOperation"]
    assert "aheartbeat" in dead()[int(result.id)]


@pytest.mark.parametrize(("extend", "error"), [(0, "ValueError"), ("soon", "TypeError")])
def test_bad_heartbeats(extend: Any, error: str) -> None:
    assert error_classes(outcome(contextual.heartbeat_badly, extend)) == [error]
