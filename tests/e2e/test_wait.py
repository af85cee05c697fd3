"""Results that are waited for, with real workers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from alkstore_django.compat import TaskResultStatus
from alkstore_django.exceptions import TaskCancelled, TaskTimedOut
from tests.app import contextual, coroutines, tasks, waiting
from tests.processes import Journal, Workers

pytestmark = pytest.mark.django_db(transaction=True)


def test_success_and_failure(workers: Workers) -> None:
    workers.ready()
    added, failed = tasks.add.enqueue(2, 3), tasks.fail.using(max_attempts=1).enqueue()
    assert added.wait(60).return_value == 5
    assert failed.wait(60).status == TaskResultStatus.FAILED
    assert async_to_sync(tasks.add.enqueue(4, 5).await_result)(60).return_value == 9
    atomic = waiting.add_atomically.enqueue(1, 1)
    assert atomic.wait(60).return_value == 2


def test_all_attempts(workers: Workers) -> None:
    workers.ready()
    result = coroutines.fail.enqueue().wait(60)
    assert (result.status, result.attempts, len(result.errors)) == (TaskResultStatus.FAILED, 2, 2)


def test_soon(workers: Workers, journal: Journal, gate: Path) -> None:
    """The end is known long before anybody would have looked by himself."""
    workers.ready("--threads", 4)
    fast = min(timed(tasks.nothing.enqueue()) for _ in range(5))
    assert fast < (1.0 if connection.vendor == "mysql" else 0.5)
    slow = tasks.hold.enqueue(journal.path, "x", str(gate))
    workers.wait_until(lambda: journal.lines == ["start x"], "it runs")
    with pytest.raises(TimeoutError):
        slow.wait(1.5)
    assert slow.status == TaskResultStatus.RUNNING
    gate.touch()
    assert slow.wait(60).status == TaskResultStatus.SUCCESSFUL


def timed(result: Any) -> float:
    started = time.monotonic()
    result.wait(60)
    return time.monotonic() - started


def test_a_cancelled_one(workers: Workers, journal: Journal) -> None:
    workers.ready("--visibility-timeout", 3600)
    for task in (contextual.watch_out, contextual.wait_for_cancellation):
        lines = len(journal.lines)
        result = task.enqueue(journal.path)
        workers.wait_until(lambda lines=lines: len(journal.lines) > lines, "it runs")
        assert result.cancel()
        result.wait(60)
        assert [error.exception_class for error in result.errors] == [TaskCancelled]
        workers.wait_until(lambda: "cancelled" in journal.lines[-1], "it was told")


def test_in_a_task(workers: Workers) -> None:
    """A task may wait for another one, if a thread is left for that."""
    workers.ready("--threads", 2)
    assert waiting.ask_another.enqueue(20, 22).wait(60).return_value == 42


def test_a_task_that_waits_for_too_long(workers: Workers) -> None:
    """Its own timeout ends it; who waits after it is not harmed."""
    workers.ready("--threads", 2)
    result = waiting.wait_for_ever.enqueue().wait(60)
    assert [error.exception_class for error in result.errors] == [TaskTimedOut]
    assert waiting.ask_another.enqueue(1, 2).wait(60).return_value == 3
