"""``django.tasks``: what enqueue does, whatever the decorator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.http import HttpRequest
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.translation import gettext_lazy

from alkstore_django.backends import AlkstoreBackend
from alkstore_django.compat import NATIVE, InvalidTask, TaskResultStatus, task_backends, task_enqueued
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from tests.contract import tasks
from tests.factories import columns, now, within_a_second

pytestmark = pytest.mark.django_db

NAN = float("nan")


@pytest.fixture
def sent() -> Iterator[list[tuple[Any, Any]]]:
    """Sender and result of every ``task_enqueued``."""
    heard: list[tuple[Any, Any]] = []

    def hear(sender: Any, task_result: Any, **kwargs: Any) -> None:
        heard.append((sender, task_result))

    task_enqueued.connect(hear)
    yield heard
    task_enqueued.disconnect(hear)


def payload(result: Any) -> Any:
    return json.loads(columns(int(result.id), "payload")[0])


def test_the_result_of_an_enqueue() -> None:
    before = timezone.now().replace(microsecond=0)
    result = tasks.send.enqueue(1, when="soon")
    assert (result.task, result.status, result.backend) == (tasks.send, TaskResultStatus.READY, "default")
    assert (result.args, result.kwargs) == ([1], {"when": "soon"})
    assert before <= result.enqueued_at <= timezone.now()
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.errors, result.worker_ids, result.attempts) == ([], [], 0)
    assert type(result.id) is str
    assert len(result.id) < 64


def test_the_envelope_is_that_of_honker() -> None:
    result = tasks.send.enqueue(1, to="é")
    assert payload(result) == {
        "__honker_task__": {"task": "tests.contract.tasks.send", "args": [1], "kwargs": {"to": "é"}}
    }
    assert columns(int(result.id), "payload")[0].startswith('{"__honker_task__"')


def test_the_options_of_a_task() -> None:
    def enqueue() -> None:
        job_id = int(tasks.receipt.enqueue(7).id)
        assert columns(job_id, "queue", "priority", "max_attempts") == ("mail", 5, 7)
        assert columns(job_id, "run_at", "expires_at") == (now(), now() + 600)
        assert columns(job_id, "payload")[0].startswith(
            '{"__honker_task__":{"task":"contract.receipt","args":[7]'
        )

    within_a_second(enqueue)


@pytest.mark.parametrize(
    ("task", "queue", "priority"), [("plain", "default", 0), ("plain_with_options", "mail", 3)]
)
def test_a_plain_task_has_our_defaults(task: str, queue: str, priority: int) -> None:
    result = getattr(tasks, task).enqueue()
    assert columns(int(result.id), "queue", "priority", "max_attempts", "expires_at") == (
        queue,
        priority,
        3,
        None,
    )
    assert payload(result)["__honker_task__"]["task"] == f"tests.contract.tasks.{task}"


@pytest.mark.parametrize("task", [tasks.send, tasks.plain], ids=["ours", "plain"])
def test_using(task: Any) -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    for priority in (-100, 0, 1.0, True, 100):
        using = task.using(priority=priority, queue_name="x", run_after=moment)
        found = columns(int(using.enqueue().id), "priority", "queue", "run_at")
        assert found == (int(priority), "x", 1_893_456_000)
    result = tasks.send.using(max_attempts=1, expires=timedelta(minutes=1)).enqueue()
    max_attempts, expires_at, created_at = columns(int(result.id), "max_attempts", "expires_at", "created_at")
    assert (max_attempts, expires_at - created_at) == (1, 60)


def test_run_after_from_now() -> None:
    result = tasks.send.using(run_after=timedelta(seconds=100)).enqueue()
    assert 99 <= columns(int(result.id), "run_at")[0] - now() <= 101


@override_settings(USE_TZ=False, TIME_ZONE="America/New_York")
def test_run_after_without_time_zones() -> None:
    result = tasks.send.using(run_after=datetime(2030, 1, 1)).enqueue()
    assert columns(int(result.id), "run_at") == (1_893_474_000,)
    assert tasks.send.get_result(result.id).task.run_after == datetime(2030, 1, 1)


def test_it_tells(sent: list[Any]) -> None:
    result = tasks.send.enqueue(1)
    assert sent == [(AlkstoreBackend, result)]
    with pytest.raises(TypeError):
        tasks.send.enqueue({1})
    assert len(sent) == 1


@pytest.mark.parametrize("task", [tasks.send, tasks.plain], ids=["ours", "plain"])
def test_it_answers_what_can_be_read_later(task: Any) -> None:
    for result in (task.enqueue(1, to=2), task.using(priority=3, queue_name="mail").enqueue(), *bulk(task)):
        assert task.get_result(result.id) == result


def bulk(task: Any) -> list[Any]:
    return task.enqueue_many([(1,), {"to": 2}]) if hasattr(task, "enqueue_many") else []


def test_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        tasks.send.enqueue(1)


def test_it_does_not_wait_for_the_commit(django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks() as callbacks, transaction.atomic():
        result = tasks.send.enqueue(1)
        assert Job.objects.filter(pk=result.id).exists()
    assert callbacks == []


def test_rolled_back() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        result = tasks.send.enqueue(1)
        raise ZeroDivisionError
    assert not Job.objects.filter(pk=result.id).exists()


@pytest.mark.parametrize(
    ("argument", "normalised"),
    [
        ((1, (2,)), [1, [2]]),
        (b"x", "x"),
        ({1: b"y"}, {"1": "y"}),
        (2**70, 2**70),
        ("a\x00\ud800", "a\x00\ud800"),
        ({None: {True: 1.0}}, {"null": {"true": 1.0}}),
        (range(2), [0, 1]),
    ],
    ids=repr,
)
def test_arguments_are_json_before_it_returns(argument: Any, normalised: Any) -> None:
    result = tasks.send.enqueue(argument, key=argument)
    assert (result.args, result.kwargs) == ([normalised], {"key": normalised})
    stored = tasks.send.get_result(result.id)
    assert (stored.args, stored.kwargs) == (result.args, result.kwargs)


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ({1}, TypeError),
        (object(), TypeError),
        (Decimal(1), TypeError),
        (datetime(2026, 1, 1, tzinfo=UTC), TypeError),
        (date(2026, 1, 1), TypeError),
        (timedelta(1), TypeError),
        (UUID(int=1), TypeError),
        (gettext_lazy("Yes"), TypeError),
        (User(), TypeError),
        (HttpRequest(), TypeError),
        (lambda: 1, TypeError),
        (b"\xff", ValueError),
        (NAN, ValueError),
        ({1: 1, "1": 1}, ValueError),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_arguments_name_the_path(argument: Any, error: type[Exception]) -> None:
    for call, path in (
        (lambda: tasks.send.enqueue([argument]), r"args\[0\]\[0\]"),
        (lambda: tasks.send.enqueue(to=argument), r"kwargs\['to'\]"),
    ):
        with CaptureQueriesContext(connection) as captured, pytest.raises(error, match=path):
            call()
        assert captured.captured_queries == []
    with transaction.atomic():
        with pytest.raises(error):
            tasks.send.enqueue(argument)
        assert tasks.send.enqueue(1).id


@pytest.mark.parametrize("moment", [datetime.max.replace(tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)])
def test_moments_that_cannot_be_stored(moment: datetime) -> None:
    with CaptureQueriesContext(connection) as captured, pytest.raises(ValueError, match="run_at must lie"):
        tasks.send.using(run_after=moment).enqueue()
    assert captured.captured_queries == []


@pytest.mark.parametrize(
    "moment", [datetime(2026, 1, 1), 5, 1.5, True, "2026-01-01", date(2026, 1, 1), NAN], ids=repr
)
def test_what_is_no_moment_is_refused_with_the_task(moment: Any) -> None:
    for task in (tasks.send, tasks.plain):
        with CaptureQueriesContext(connection) as captured, pytest.raises((InvalidTask, TypeError)) as raised:
            task.using(run_after=moment).enqueue()
        assert "run_after" in str(raised.value)
        assert captured.captured_queries == []


def test_a_task_is_validated_again_at_enqueue() -> None:
    backend = "alkstore_django.backends.AlkstoreBackend"
    with override_settings(TASKS={"default": {"BACKEND": backend, "QUEUES": ["only"]}}):
        with pytest.raises(InvalidTask, match="Queue 'default' is not valid for backend"):
            tasks.send.enqueue(1)
        assert not Job.objects.exists()


def test_our_tasks_on_other_backends() -> None:
    family = "django.tasks" if NATIVE else "django_tasks"
    others = {
        name: {"BACKEND": f"{family}.backends.{name}.{name.title()}Backend"}
        for name in ("immediate", "dummy")
    }
    with override_settings(TASKS={**settings.TASKS, **others}):
        assert tasks.send.using(backend="immediate").enqueue(5).return_value == 5
        result = tasks.send.using(backend="dummy").enqueue(5)
        assert (result.status, result.task.backend) == (TaskResultStatus.READY, "dummy")
        plain = tasks.plain.using(backend="dummy").using(backend="default")
        assert payload(plain.enqueue(1))["__honker_task__"]["task"] == "tests.contract.tasks.plain"


def test_lists_and_tuples_of_arguments() -> None:
    backend = task_backends["default"]
    for args in ([1], (1,)):
        assert backend.enqueue(tasks.send, args, {}).args == [1]


def test_what_it_says_that_it_can() -> None:
    backend = task_backends["default"]
    assert type(backend) is AlkstoreBackend
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


def test_a_claim_gives_the_envelope_back() -> None:
    tasks.receipt.enqueue(7)
    job = Queue("mail").claim_one("w")
    assert job is not None
    assert job.payload["__honker_task__"] == {"task": "contract.receipt", "args": [7], "kwargs": {}}
