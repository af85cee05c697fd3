"""What ``enqueue`` does when the key of a unique task is held."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from alkstore_django.compat import TaskResultStatus, task_enqueued
from alkstore_django.models import Job, Run
from alkstore_django.signals import unique_conflict
from alkstore_django.turns import Verdict
from tests.contract.stages import claim, failure, settle
from tests.contract.uniques import each_lasting, is_free, unique
from tests.factories import where

pytestmark = pytest.mark.django_db


class Ears:
    """What was heard of enqueues."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, bool]] = []

    def enqueued(self, task_result: Any, **kwargs: Any) -> None:
        self.heard.append(("enqueued", task_result.id, task_result.created))

    def conflict(self, sender: Any, task_result: Any, task: Any, **kwargs: Any) -> None:
        assert sender.__name__ == "AlkstoreBackend" and task.unique is True
        self.heard.append(("conflict", task_result.id, task_result.created))


@pytest.fixture
def ears() -> Any:
    listening = Ears()
    task_enqueued.connect(listening.enqueued)
    unique_conflict.connect(listening.conflict)
    yield listening
    task_enqueued.disconnect(listening.enqueued)
    unique_conflict.disconnect(listening.conflict)


@pytest.mark.parametrize(("conflict", "is_told"), [("existing", True), ("ignore", False), ("replace", True)])
def test_signals_and_the_log(conflict: str, is_told: bool, ears: Ears, caplog: Any) -> None:
    caplog.set_level("INFO", "alkstore_django")
    task = unique(on_conflict=conflict)
    first = task.enqueue(1)
    claim(first)
    again = task.enqueue(1)
    told = [("conflict", again.id, False)] if is_told else []
    assert ears.heard == [("enqueued", first.id, True), *told]
    lines = [record.getMessage() for record in caplog.records if "key" in record.getMessage()]
    assert (
        lines
        == [f"Task tests.contract.tasks.send was not enqueued: job id={first.id} has its key."] * is_told
    )


def test_a_receiver_that_fails_changes_nothing(ears: Ears) -> None:
    def fail(**kwargs: Any) -> None:
        raise ZeroDivisionError

    unique_conflict.connect(fail)
    try:
        task = unique()
        task.enqueue(1)
        assert not task.enqueue(1).created
    finally:
        unique_conflict.disconnect(fail)


@each_lasting
def test_replace_takes_the_place_of_a_waiting_job(lasting: Any) -> None:
    task = unique("k", on_conflict="replace", unique_for=lasting)
    first = task.enqueue(1)
    second = task.using(priority=5, run_after=timedelta(hours=1)).enqueue(2)
    assert second.created and second.id != first.id
    first.refresh()
    assert first.status == TaskResultStatus.FAILED
    assert first.errors[-1].exception_class.__name__ == "TaskCancelled"
    assert where(int(first.id)) == "run"
    third = task.enqueue(3)
    assert third.created and where(int(second.id)) == "run"
    assert list(Job.objects.values_list("pk", flat=True)) == [int(third.id)]


def test_replace_takes_the_place_of_one_that_waits_for_a_retry() -> None:
    task = unique(on_conflict="replace")
    first = task.enqueue(1)
    settle(claim(first), Verdict.RETRY, failure=failure(), delay=60)
    assert is_free(task, first)
    assert where(int(first.id)) == "run"


@pytest.mark.parametrize(("lasting", "created"), [("finished", False), ("queued", True), (600, False)])
def test_replace_lets_a_running_job_run(lasting: Any, created: bool) -> None:
    task = unique(on_conflict="replace", unique_for=lasting)
    first = task.enqueue(1)
    held = claim(first)
    assert is_free(task, first) == created
    settle(held, Verdict.ACK)
    assert where(held.id) == "run"
    assert Run.objects.get(pk=held.id).status == Run.SUCCEEDED


def test_replace_does_not_replace_what_is_done() -> None:
    task = unique(on_conflict="replace", unique_for=600)
    first = task.enqueue(1)
    settle(claim(first), Verdict.ACK)
    assert not is_free(task, first)
