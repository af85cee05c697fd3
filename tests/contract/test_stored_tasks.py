"""What ``get_result`` makes of an id, of a task as it was stored, and of what others have stored."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

from alkstore_django.compat import NATIVE, TaskResultDoesNotExist, TaskResultStatus, task_backends
from tests import factories
from tests.contract import tasks
from tests.contract.stages import claim, enqueue
from tests.factories import change

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "result_id",
    [
        "",
        "x",
        "0",
        "-1",
        "+1",
        "1.0",
        "007",
        " 1",
        "1\n",
        "１",
        "²",
        "9" * 19,
        "9" * 400,
        str(2**63),
        "None",
        None,
        1.5,
    ],
)
def test_ids_that_no_result_has(result_id: Any) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        tasks.send.get_result(result_id)


def test_jobs_that_are_no_tasks() -> None:
    for text in ('{"to": 1}', "not json", '{"__honker_task__": []}'):
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(str(factories.live("q", text)))


def test_a_job_that_another_program_finished() -> None:
    result = enqueue(1)
    held = claim(result)
    factories.Job.objects.filter(pk=held.id).delete()
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


def test_of_another_task() -> None:
    family = import_module("django.tasks.exceptions" if NATIVE else "django_tasks.exceptions")
    with pytest.raises(family.TaskResultMismatch):
        tasks.other.get_result(enqueue(1).id)


def test_a_task_that_is_not_in_the_code_any_more() -> None:
    job_id = factories.live("q", '{"__honker_task__":{"task":"gone.away.func","args":[1],"kwargs":{}}}')
    found = task_backends["default"].get_result(str(job_id))
    assert (found.task.module_path, found.task.name, found.args) == ("gone.away.func", "func", [1])
    with pytest.raises(Exception, match="no task 'gone.away.func' is in the code any more"):
        found.task.call(1)


def test_after_the_queue_was_taken_out_of_the_settings() -> None:
    result = enqueue(1)
    backend = "alkstore_django.backends.AlkstoreBackend"
    with override_settings(TASKS={"default": {"BACKEND": backend, "QUEUES": ["only"]}}):
        found = task_backends["default"].get_result(result.id)
        assert found.task.queue_name == result.task.queue_name


@pytest.mark.parametrize(
    "extra",
    [
        '{"run_after": "yesterday"}',
        '{"run_after": 5, "backend": [1], "expires": "x"}',
        '{"backend": null, "expires": true}',
        "[]",
    ],
)
def test_keys_of_ours_that_another_program_wrote(extra: str) -> None:
    job_id = factories.live(
        "q", f'{{"__honker_task__":{{"task":"tests.contract.tasks.send"}},"alkstore":{extra}}}', priority=1
    )
    found = tasks.send.get_result(str(job_id))
    assert (found.task.run_after, found.task.backend, found.task.expires) == (None, "default", None)


def test_a_state_that_we_do_not_know() -> None:
    result = enqueue(1)
    change(int(result.id), state="unknown")
    result.refresh()
    assert result.status == TaskResultStatus.READY


def test_all_options_of_a_task_come_back() -> None:
    result = tasks.receipt.using(priority=1, max_attempts=2, expires=5).enqueue(7)
    assert tasks.receipt.get_result(result.id).task == result.task
    assert (
        tasks.plain_with_options.get_result(tasks.plain_with_options.enqueue().id).task
        == tasks.plain_with_options
    )


def test_times_without_time_zones() -> None:
    with override_settings(USE_TZ=False):
        result = enqueue(1)
        found = tasks.send.get_result(result.id)
        assert found.enqueued_at.tzinfo is None
        assert abs(found.enqueued_at - datetime.now()) < timedelta(hours=25)


@pytest.mark.django_db(transaction=True)
def test_from_another_thread() -> None:
    result = enqueue(1)
    found: list[Any] = []

    def look() -> None:
        try:
            found.append(tasks.send.get_result(result.id))
        finally:
            connections.close_all()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(30)
    assert [each.task for each in found] == [result.task]
