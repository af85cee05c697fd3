"""What tasks tell of themselves, by real workers in processes of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone, translation

from alkstore_django.compat import TaskResultStatus
from alkstore_django.models import Metadata
from tests import factories
from tests.app import told
from tests.e2e.test_outcomes import outcome
from tests.processes import Journal, Workers

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = pytest.mark.parametrize("task", [told.progress, told.progress_async], ids=["sync", "async"])


def test_progress_can_be_read_while_it_goes_on(workers: Workers, journal: Journal, gate: Path) -> None:
    result = told.tell_and_hold.enqueue(journal.path, str(gate))
    worker = workers.start()
    workers.wait_until(lambda: journal.lines == ["half"], "it is half way")
    result.refresh()
    assert (result.status, result.metadata) == (TaskResultStatus.RUNNING, {"percent": 50})
    gate.touch()
    workers.wait_until(lambda: told.tell_and_hold.get_result(result.id).is_finished, "it is done")
    assert worker.stop() == 0
    result.refresh()
    assert (result.return_value, result.metadata) == (True, {"percent": 99})


def test_who_lost_the_claim_tells_nothing_more(workers: Workers, journal: Journal, gate: Path) -> None:
    result = told.tell_and_hold.enqueue(journal.path, str(gate))
    worker = workers.start("--visibility-timeout", 3600)
    workers.wait_until(lambda: journal.lines == ["half"], "it is half way")
    another = {"worker_id": "another", "attempts": 2, "claim_expires_at": factories.at(60)}
    factories.change(int(result.id), **another)
    gate.touch()
    worker.stop()
    result.refresh()
    assert (result.status, result.metadata) == (TaskResultStatus.RUNNING, {"percent": 50})


@BOTH
def test_an_attempt_goes_on_where_the_last_one_was(task: Any) -> None:
    result = outcome(task.using(max_attempts=2, metadata={"trace": 7}), 2, True)
    assert (result.attempts, result.metadata) == (2, {"trace": 7, "done": 2, "at the end": True})


def test_a_worker_sweeps_what_belongs_to_no_job(workers: Workers) -> None:
    kept = factories.dead(9_001)
    for job_id in (kept, 9_002):
        Metadata.objects.create(job_id=job_id, value="{}")
    worker = workers.start()
    workers.wait_until(lambda: Metadata.objects.count() == 1, "it has swept")
    assert worker.stop() == 0
    assert Metadata.objects.get().job_id == kept


@pytest.mark.parametrize(
    ("task", "times"),
    [(told.where, 1), (told.where_async, 2), (told.where_atomic, 1)],
    ids=lambda it: str(it)[-20:],
)
def test_language_and_time_zone_of_the_enqueue(task: Any, times: int) -> None:
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        assert outcome(task).return_value == ["de", "Asia/Tokyo"] * times
    assert outcome(task).return_value == ["en-us", "UTC"] * times
