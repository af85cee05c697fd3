"""``result.cancel()``: what is cancelled, and what its result says then."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import transaction
from django.test import override_settings

from alkstore_django.compat import TaskResultStatus, task_backends
from alkstore_django.exceptions import TaskCancelled
from alkstore_django.queues import Queue
from tests.contract import tasks
from tests.factories import where

pytestmark = pytest.mark.django_db(databases=["default", "other"])


def is_cancelled(result: Any) -> bool:
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.finished_at is not None
    return [error.exception_class for error in result.errors] == [TaskCancelled]


@pytest.mark.parametrize("task", [tasks.send, tasks.plain], ids=["ours", "plain"])
def test_a_waiting_task(task: Any) -> None:
    result = task.enqueue(1)
    assert result.cancel() is True
    assert result.status == TaskResultStatus.READY  # until it is refreshed
    assert is_cancelled(result)
    assert (result.attempts, result.worker_ids, result.started_at) == (0, [], None)
    assert result.cancel() is False


def test_a_running_task() -> None:
    result = tasks.send.enqueue(1)
    job = Queue("default").claim_one("w")
    assert job is not None
    assert tasks.send.get_result(result.id).cancel()
    assert is_cancelled(result)
    assert (result.attempts, result.worker_ids) == (1, ["w"])
    assert not Queue("default").ack(job)


def test_what_has_ended() -> None:
    results = [tasks.send.enqueue(1), tasks.send.enqueue(2)]
    done, failed = Queue("default").claim_batch("w", 2)
    assert Queue("default").ack(done)
    assert Queue("default").fail(failed)
    assert [result.cancel() for result in results] == [False, False]
    assert where(failed.id) == "dead"


def test_awaited() -> None:
    result = tasks.send.enqueue(1)
    assert async_to_sync(result.acancel)() is True
    assert async_to_sync(result.acancel)() is False
    assert is_cancelled(result)


def test_rolled_back() -> None:
    result = tasks.send.enqueue(1)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert result.cancel()
        raise ZeroDivisionError
    result.refresh()
    assert result.status == TaskResultStatus.READY


def test_by_the_backend_that_has_it() -> None:
    far = {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "OPTIONS": {"DATABASE": "other"}}
    with override_settings(TASKS={**settings.TASKS, "far": far}):
        there, here = tasks.send.using(backend="far").enqueue(1), tasks.send.enqueue(1)
        assert there.cancel()
        assert is_cancelled(there)
        here.refresh()
        assert here.status == TaskResultStatus.READY


@pytest.mark.parametrize("result_id", ["", "x", "-1", "0", "1.5", "9" * 30, str(2**60)])
def test_ids_that_nothing_has(result_id: str) -> None:
    assert task_backends["default"].cancel(result_id) is False
