"""``get_result`` at every stage of a task."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from alkstore_django import queues, turns
from alkstore_django.compat import TaskResultDoesNotExist, TaskResultStatus
from alkstore_django.queues import Queue
from alkstore_django.sql.tables import ATTEMPTS, RESULTS
from alkstore_django.turns import Verdict, Wish
from alkstore_django.values import as_datetime
from tests import factories
from tests.contract import tasks
from tests.contract.stages import claim, enqueue, failure, settle, shape
from tests.factories import at, change

pytestmark = pytest.mark.django_db

READY, RUNNING = TaskResultStatus.READY, TaskResultStatus.RUNNING
FAILED, SUCCESSFUL = TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"priority": -7},
        {"run_after": timedelta(hours=1)},
        {"max_attempts": 1},
        {"expires": 60},
        {"expires": 0},
    ],
    ids=str,
)
def test_waiting(options: Any) -> None:
    result = enqueue(1, **options)
    found = tasks.send.get_result(result.id)
    assert shape(found) == (READY, [False] * 3, 0, 0)
    assert (found.task, found.id, found.args, found.kwargs) == (result.task, result.id, [1], {})
    assert found.worker_ids == []
    assert found.enqueued_at == result.enqueued_at
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = found.return_value


def test_running() -> None:
    result = enqueue(1)
    held = claim(result)
    result.refresh()
    assert shape(result) == (RUNNING, [True, True, False], 1, 0)
    assert result.worker_ids == ["w"]
    assert result.started_at == result.last_attempted_at == as_datetime(held.claimed_at)


def test_given_back() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.GIVE_BACK)
    result.refresh()
    assert shape(result) == (READY, [False] * 3, 0, 0)


def test_succeeded() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.ACK, value='{"a":[1]}', ttl=60, duration_ms=5)
    result.refresh()
    assert shape(result) == (SUCCESSFUL, [True] * 3, 1, 0)
    assert result.return_value == {"a": [1]}
    assert result.worker_ids == ["w"]
    assert tasks.send.get_result(result.id).task == result.task


def test_succeeded_without_a_value() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.ACK)
    result.refresh()
    assert (result.status, result.return_value) == (SUCCESSFUL, None)


def test_waiting_for_a_retry_and_then_succeeded() -> None:
    result = enqueue(1)
    first = claim(result, "w1")
    change(first.id, claimed_at=first.claimed_at - 100)
    settle(first._replace(claimed_at=first.claimed_at - 100), Verdict.RETRY, failure=failure("first"))
    result.refresh()
    assert shape(result) == (READY, [True, True, False], 1, 1)
    settle(claim(result, "w1"), Verdict.RETRY, failure=failure("second"))
    settle(claim(result, "w2"), Verdict.ACK, value="3")
    result.refresh()
    assert shape(result) == (SUCCESSFUL, [True] * 3, 3, 2)
    assert result.worker_ids == ["w1", "w1", "w2"]
    assert result.last_attempted_at - result.started_at >= timedelta(seconds=100)
    assert [error.exception_class for error in result.errors] == [ValueError, ValueError]
    assert "ValueError: first" in result.errors[0].traceback
    assert result.return_value == 3


def test_dead() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.DEAD, failure=failure())
    result.refresh()
    assert shape(result) == (FAILED, [True] * 3, 1, 1)
    assert result.errors[0].exception_class_path == "builtins.ValueError"
    assert tasks.send.get_result(result.id).task == result.task
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_requeued() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.DEAD, failure=failure())
    assert queues.requeue([int(result.id)])
    result.refresh()
    assert shape(result) == (READY, [True, True, False], 1, 1)
    settle(claim(result, "w2"), Verdict.ACK)
    result.refresh()
    assert shape(result) == (SUCCESSFUL, [True] * 3, 2, 1)
    assert result.worker_ids == ["w", "w2"]


def test_discarded() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.DISCARD, failure=failure())
    result.refresh()
    assert shape(result) == (FAILED, [True] * 3, 1, 1)
    assert result.worker_ids == ["w"]
    assert factories.where(int(result.id)) == "run"


def test_interrupted() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.INTERRUPT)
    result.refresh()
    assert shape(result) == (READY, [True, True, False], 1, 1)
    assert result.errors[0].exception_class.__name__ == "TaskInterrupted"


def test_a_worker_that_vanished() -> None:
    result = enqueue(1)
    factories.lapse(claim(result, "gone").id)
    again = turns.reclaim_one("default", "w", Wish(result.task.queue_name, 5, 60))
    assert again is not None
    result.refresh()
    assert shape(result) == (RUNNING, [True, True, False], 2, 1)
    assert result.worker_ids == ["gone", "w"]
    assert result.errors[0].exception_class.__name__ == "WorkerLost"


def test_expired() -> None:
    result = enqueue(1, expires=0)
    assert Queue(result.task.queue_name).sweep_expired() == 1
    result.refresh()
    assert shape(result) == (FAILED, [False, False, True], 0, 1)
    assert result.errors[0].exception_class.__name__ == "TaskExpired"


@pytest.mark.parametrize(("running", "attempts"), [(False, 0), (True, 1)])
def test_cancelled(running: bool, attempts: int) -> None:
    result = enqueue(1)
    if running:
        claim(result)
    assert queues.cancel(int(result.id))
    result.refresh()
    assert shape(result) == (FAILED, [running, running, True], attempts, 1)
    assert result.errors[0].exception_class.__name__ == "TaskCancelled"
    assert tasks.send.get_result(result.id).task == result.task


def test_cancelled_while_it_waits_for_a_retry() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.RETRY, failure=failure())
    assert queues.cancel(int(result.id))
    result.refresh()
    assert shape(result) == (FAILED, [True] * 3, 1, 2)
    assert result.worker_ids == ["w"]


def test_when_its_time_is_over_it_does_not_exist() -> None:
    result = enqueue(1)
    settle(claim(result), Verdict.ACK, value="1", ttl=60)
    change(int(result.id), model=factories.Run, expires_at=at(0))
    with pytest.raises(TaskResultDoesNotExist):
        tasks.send.get_result(result.id)


def test_a_value_whose_time_ends_between_two_looks_is_not_none() -> None:
    """The job was there when it was looked for, and its value not any more."""
    result = enqueue(1)
    settle(claim(result), Verdict.ACK, value="1", ttl=60)

    def too_late(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT") and RESULTS in sql:
            change(int(result.id), model=factories.Result, expires_at=at(0))
            change(int(result.id), model=factories.Run, expires_at=at(0))
        return execute(sql, *rest)

    with connection.execute_wrapper(too_late), pytest.raises(TaskResultDoesNotExist):
        tasks.send.get_result(result.id)


def test_an_attempt_that_ends_between_two_looks_is_told_once() -> None:
    result = enqueue(1)
    claims = [claim(result)]

    def end_it(execute: Any, sql: str, *rest: Any) -> Any:
        if claims and sql.startswith("SELECT") and ATTEMPTS in sql:
            settle(claims.pop(), Verdict.RETRY, failure=failure(), delay=60)
        return execute(sql, *rest)

    with connection.execute_wrapper(end_it):
        found = tasks.send.get_result(result.id)
    assert shape(found) == (READY, [True, True, False], 1, 1)


def test_a_history_that_is_deleted_between_two_looks() -> None:
    """A task that has failed has errors, or it is not known any more."""
    result = enqueue(1)
    settle(claim(result), Verdict.DISCARD, failure=failure(), ttl=60)

    def too_late(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT") and ATTEMPTS in sql:
            factories.ask(f"DELETE FROM {ATTEMPTS}")
            change(int(result.id), model=factories.Run, expires_at=at(0))
        return execute(sql, *rest)

    with connection.execute_wrapper(too_late), pytest.raises(TaskResultDoesNotExist):
        tasks.send.get_result(result.id)
