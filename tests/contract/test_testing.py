"""``alkstore_django.testing`` in the transaction of a test: ``drain`` and the modes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from alkstore_django import registry
from alkstore_django.compat import TaskResultStatus, task_finished, task_started
from alkstore_django.exceptions import TaskExpired, TaskTimedOut
from alkstore_django.handlers import handler
from alkstore_django.models import Attempt, DeadJob, Job
from alkstore_django.outbox import outbox
from alkstore_django.queues import Queue
from alkstore_django.testing import Ran, drain, immediate, manual, travel
from tests import factories
from tests.app import tasks, told
from tests.factories import at, history, where

pytestmark = pytest.mark.django_db

ADDERS = [tasks.add, tasks.plain_add, tasks.async_add]
READY, SUCCESSFUL, FAILED = TaskResultStatus.READY, TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    told.heard.clear()
    yield
    told.heard.clear()


def ends(found: list[Ran]) -> list[str]:
    return [ran.ended for ran in found]


# -- drain ----------------------------------------------------------------------------------------------


def test_nothing_to_do() -> None:
    assert drain() == []


@pytest.mark.parametrize(
    "task", [tasks.add, tasks.plain_add, tasks.async_add], ids=["sync", "plain", "async"]
)
def test_it_runs_what_is_due(task: Any) -> None:
    result = task.enqueue(1, 2)
    (ran,) = drain()
    assert (ran.job_id, ran.task, ran.attempt, ran.ended, ran.value) == (
        int(result.id),
        task.module_path,
        1,
        "succeeded",
        3,
    )
    assert ran.error is None
    assert (ran.result.status, ran.result.return_value) == (SUCCESSFUL, 3)
    result.refresh()
    assert (result.return_value, len(result.worker_ids)) == (3, 1)
    assert where(int(result.id)) == "run"
    assert drain() == []


def test_in_the_order_of_a_worker() -> None:
    for priority in (0, 5, -5, 5):
        tasks.add.using(priority=priority).enqueue(priority, 0)
    assert [ran.value for ran in drain()] == [5, 5, 0, -5]


def test_the_transaction_of_the_test_goes_on() -> None:
    assert connection.in_atomic_block
    told.make_group.enqueue("mine")
    told.make_group_and_fail.enqueue("mine, too")
    assert ends(drain()) == ["succeeded", "dead"]
    assert connection.in_atomic_block
    assert set(Group.objects.values_list("name", flat=True)) == {"mine", "mine, too"}


def test_coroutines_see_the_transaction_of_the_test() -> None:
    Group.objects.create(name="of the test")
    (result,) = [tasks.async_group.enqueue("of the task")]
    (ran,) = drain()
    assert ran.value == Group.objects.get(name="of the task").pk
    assert ran.job_id == int(result.id)


def test_what_a_task_enqueues_is_run_too() -> None:
    told.enqueue_another.enqueue("first")
    told.aenqueue_another.enqueue("second")
    assert [ran.task.rpartition(".")[2] for ran in drain()] == [
        "enqueue_another",
        "aenqueue_another",
        "make_group",
        "make_group",
    ]
    assert Group.objects.count() == 2


def test_it_takes_as_many_queries_each_time() -> None:
    numbers = []
    for _ in range(3):
        with CaptureQueriesContext(connection) as captured:
            tasks.add.enqueue(1, 2)
            drain()
        numbers.append(len(captured))
    assert numbers[1] == numbers[2] <= 30  # SQLite makes what a turn needs with the first


def test_a_limit() -> None:
    for number in range(3):
        tasks.add.enqueue(number, 0)
    assert [ran.value for ran in drain(limit=2)] == [0, 1]
    assert drain(limit=0) == []
    assert [ran.value for ran in drain(limit=9)] == [2]


def test_one_that_enqueues_itself_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from alkstore_django.testing import draining

    monkeypatch.setattr(draining, "ENDLESS", 5)
    told.enqueue_itself.enqueue()
    with pytest.raises(AssertionError, match="5 attempts, and still no end: does .*enqueue_itself"):
        drain()
    assert len(drain(limit=7)) == 7


def test_some_queues() -> None:
    for name in ("a", "b", "c"):
        tasks.add.using(queue_name=name).enqueue(name, "!")
    assert [ran.value for ran in drain("b")] == ["b!"]
    assert [ran.queue for ran in drain(["c", "nothing"])] == ["c"]
    assert [ran.queue for ran in drain()] == ["a"]


def test_paused_queues_and_outboxes_are_left() -> None:
    tasks.add.using(queue_name="a").enqueue(1, 1)
    tasks.add.using(queue_name="_outbox:mail").enqueue(1, 1)
    Queue("a").pause()
    assert drain() == []
    assert len(drain("_outbox:mail")) == 1
    Queue("a").resume()
    assert len(drain()) == 1


def test_handlers_get_what_is_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    handler("told")(make)
    job_id = Queue("told").enqueue({"name": "of a handler"})
    (ran,) = drain()
    assert (ran.job_id, ran.ended, ran.result) == (job_id, "succeeded", None)
    assert Group.objects.get().name == "of a handler"


def make(payload: Any) -> None:
    Group.objects.create(name=payload["name"])


def test_what_is_no_task_and_has_no_handler_is_left(queue: Queue) -> None:
    job_id = queue.enqueue({"to": 1})
    assert drain() == []
    assert where(job_id) == "live"


@pytest.mark.django_db(databases=["default", "other"])
def test_another_database(settings: Any) -> None:
    backend = {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "QUEUES": []}
    settings.TASKS = {"default": backend, "second": {**backend, "OPTIONS": {"DATABASE": "other"}}}
    there = tasks.add.using(backend="second")
    there.enqueue(1, 2)
    tasks.add.enqueue(3, 4)
    assert [ran.value for ran in drain(using="other")] == [3]
    there.enqueue(5, 6)
    assert {ran.value for ran in drain()} == {7, 11}
    with immediate():
        assert there.enqueue(1, 1).return_value == 2


# -- how it ends ----------------------------------------------------------------------------------------


def test_a_failure_is_told_and_not_raised() -> None:
    result = tasks.fail_for_good.enqueue()
    (ran,) = drain()
    assert ran.ended == "dead"
    assert isinstance(ran.error, tasks.Boom)
    result.refresh()
    assert (result.status, [error.exception_class for error in result.errors]) == (FAILED, [tasks.Boom])
    assert history(ran.job_id) == [("failed", 1, 1)]


def test_retries_at_once_are_due() -> None:
    tasks.fail.enqueue("again")
    assert [(ran.attempt, ran.ended, str(ran.error)) for ran in drain()] == [
        (1, "retried", "again"),
        (2, "dead", "again"),
    ]


def test_propagate_raises_what_ended_a_job() -> None:
    result = tasks.fail.enqueue("the end")
    with pytest.raises(tasks.Boom, match="the end"):
        drain(propagate=True)
    result.refresh()
    assert (result.status, result.attempts) == (FAILED, 2)


def test_discard_and_bad_values(tmp_path: Any) -> None:
    tasks.discard.enqueue(str(tmp_path / "a"))
    result = tasks.return_unserialisable.enqueue(str(tmp_path / "b"))
    assert ends(drain(until=timedelta(days=1))) == ["discarded", "dead"]
    result.refresh()
    assert [error.exception_class for error in result.errors] == [TypeError]
    assert (tmp_path / "b").read_text().splitlines() == ["run"]  # and not again


def test_system_exit_is_a_failure_of_the_task() -> None:
    result = told.quit_task.using(max_attempts=1).enqueue()
    assert ends(drain()) == ["dead"]
    result.refresh()
    assert [error.exception_class for error in result.errors] == [SystemExit]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_keyboard_interrupt_goes_through(tmp_path: Any, how: str) -> None:
    if how == "sync":
        result = tasks.interrupt.enqueue(str(tmp_path / "journal"))
    else:
        result = told.interrupt_async.enqueue()
    with pytest.raises(KeyboardInterrupt):
        drain()
    result.refresh()
    assert (result.status, result.attempts) == (READY, 1)
    assert history(int(result.id)) == [("interrupted", 1, 1)]


@pytest.mark.parametrize(
    "task", [told.too_long, told.too_long_async, told.too_long_atomic], ids=["sync", "async", "atomic"]
)
def test_timeouts(task: Any) -> None:
    Group.objects.create(name="of the test")
    result = task.enqueue()
    (ran,) = drain()
    assert ran.ended == "dead"
    assert isinstance(ran.error, TaskTimedOut)
    result.refresh()
    assert [error.exception_class for error in result.errors] == [TaskTimedOut]
    assert list(Group.objects.values_list("name", flat=True)) == ["of the test"]


def test_a_task_that_breaks_the_transaction_breaks_nothing_else() -> None:
    Group.objects.create(name="of the test")
    told.break_the_transaction.enqueue("x")
    assert ends(drain()) == ["retried", "dead"]
    told.break_and_go_on.enqueue("y")
    (ran,) = drain()
    assert (ran.ended, ran.value) == ("succeeded", 1)
    assert set(Group.objects.values_list("name", flat=True)) == {"of the test", "y"}


def test_atomic_tasks() -> None:
    told.atomic_group.enqueue("kept")
    told.atomic_group.enqueue("undone", fail=True)
    assert ends(drain()) == ["succeeded", "dead"]
    assert list(Group.objects.values_list("name", flat=True)) == ["kept"]
    assert told.heard == ["committed kept"]


def test_callbacks_of_commits_run_as_in_a_worker(django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        transaction.on_commit(lambda: told.heard.append("of the test"))
        told.with_callbacks.enqueue(["a", "b"])
        told.with_callbacks.enqueue(["c"], fail=True)
        assert ends(drain()) == ["succeeded", "dead"]
    assert told.heard == ["a", "b", "c"]
    assert len(callbacks) == 1


def test_signals_are_sent() -> None:
    heard: list[Any] = []

    def hear(sender: Any, task_result: Any, signal: Any, **kwargs: Any) -> None:
        heard.append((sender.__name__, signal is task_started, task_result.status))

    task_started.connect(hear)
    task_finished.connect(hear)
    try:
        tasks.add.enqueue(1, 2)
        drain()
    finally:
        task_started.disconnect(hear)
        task_finished.disconnect(hear)
    assert heard == [
        ("AlkstoreBackend", True, TaskResultStatus.RUNNING),
        ("AlkstoreBackend", False, SUCCESSFUL),
    ]


def test_an_unknown_task_and_a_broken_payload() -> None:
    factories.live("default", '{"__honker_task__": {"task": "nowhere.at_all", "args": []}}', max_attempts=1)
    factories.live("default", '{"__honker_task__": {"task": 5}}')
    assert ends(drain()) == ["dead", "dead"]
    assert DeadJob.objects.count() == 2


# -- time -----------------------------------------------------------------------------------------------


def test_what_is_due_later_stays() -> None:
    tasks.add.using(run_after=timedelta(hours=1)).enqueue(1, 2)
    assert drain() == []
    assert drain(until=timedelta(minutes=59)) == []
    assert [ran.value for ran in drain(until=timedelta(minutes=1))] == [3]  # an hour has passed by now


@pytest.mark.parametrize("until", [timedelta(hours=1), 3600, 3600.0], ids=str)
def test_until(until: Any) -> None:
    tasks.add.using(run_after=timedelta(hours=1)).enqueue(1, 2)
    tasks.add.using(run_after=timedelta(hours=1, seconds=10)).enqueue(3, 4)
    assert [ran.value for ran in drain(until=until)] == [3]


def test_until_a_moment() -> None:
    moment = timezone.now() + timedelta(days=3)
    tasks.add.using(run_after=moment).enqueue(1, 2)
    assert [ran.value for ran in drain(until=moment)] == [3]
    assert drain(until=moment - timedelta(days=9)) == []


def test_retries_come_in_their_time() -> None:
    told.later.enqueue(100)
    tasks.add.using(run_after=timedelta(seconds=150)).enqueue(1, 2)
    found = drain(until=timedelta(hours=1))
    assert [(ran.task.rpartition(".")[2], ran.attempt) for ran in found] == [
        ("later", 1),
        ("later", 2),
        ("add", 1),
        ("later", 3),
    ]
    assert ends(found) == ["retried", "retried", "succeeded", "dead"]


def test_a_job_expires_on_the_way() -> None:
    result = tasks.add.using(run_after=timedelta(hours=2), expires=timedelta(hours=1)).enqueue(1, 2)
    assert drain(until=timedelta(hours=3)) == []
    result.refresh()
    assert [error.exception_class for error in result.errors] == [TaskExpired]


def test_a_lapsed_claim_is_claimed_again() -> None:
    result = tasks.add.enqueue(1, 2)
    assert Queue("default").claim_one("gone") is not None
    assert drain() == []
    assert [(ran.attempt, ran.value) for ran in drain(until=timedelta(minutes=6))] == [(2, 3)]
    result.refresh()
    assert result.worker_ids[0] == "gone"


def test_travel() -> None:
    job_id = int(tasks.add.using(run_after=timedelta(hours=1), expires=timedelta(hours=2)).enqueue(1, 2).id)
    before = Job.objects.get(pk=job_id)
    travel(timedelta(hours=1))
    after = Job.objects.get(pk=job_id)
    assert (before.run_at - after.run_at, before.expires_at - after.expires_at) == (3600, 3600)
    assert before.created_at == after.created_at
    factories.claimed("held", claim_expires_at=at(60))
    travel(100)
    assert Job.objects.get(queue="held").claim_expires_at < factories.now()


def test_events_wait_in_line_however_much_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their turn is no moment: what has no time does not move."""
    monkeypatch.setattr(registry, "_handlers", {})
    tried = []

    @outbox("letters", base_backoff=10)
    def deliver(event: Any) -> None:
        tried.append(event.payload)
        if len(tried) < 2:
            raise tasks.Boom

    deliver.enqueue_many(["first", "second", "third"], keys=["k", "k", "k"])
    assert [ran.ended for ran in drain(deliver.queue_name)] == ["retried"]
    travel(timedelta(days=1))
    drain(deliver.queue_name, until=timedelta(minutes=5))
    assert tried == ["first", "first", "second", "third"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"limit": -1}, ValueError),
        ({"limit": "3"}, TypeError),
        ({"until": -1}, ValueError),
        ({"until": "soon"}, TypeError),
        ({"until": datetime(2030, 1, 1)}, ValueError),
    ],
    ids=str,
)
def test_bad_arguments(arguments: Any, error: type[Exception]) -> None:
    tasks.add.enqueue(1, 2)
    with pytest.raises(error):
        drain(**arguments)
    assert Job.objects.count() == 1


# -- modes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "task", [tasks.add, tasks.plain_add, tasks.async_add], ids=["sync", "plain", "async"]
)
def test_immediate(task: Any) -> None:
    with immediate():
        result = task.enqueue(1, 2)
        assert (result.status, result.return_value, result.attempts) == (SUCCESSFUL, 3, 1)
    assert task.enqueue(1, 2).status == READY


def test_immediate_many() -> None:
    with immediate():
        results = tasks.add.enqueue_many([(1, 2), {"a": 3, "b": 4}])
    assert [result.return_value for result in results] == [3, 7]


def test_immediate_leaves_other_jobs_alone() -> None:
    first = tasks.add.using(priority=100).enqueue(1, 2)
    with immediate():
        assert tasks.add.enqueue(3, 4).return_value == 7
    first.refresh()
    assert first.status == READY


def test_immediate_leaves_what_is_not_due() -> None:
    Queue("paused").pause()
    with immediate():
        assert tasks.add.using(run_after=timedelta(hours=1)).enqueue(1, 2).status == READY
        assert tasks.add.using(queue_name="paused").enqueue(1, 2).status == READY
        result = told.later.enqueue(60)
    assert (result.status, result.attempts, len(result.errors)) == (READY, 1, 1)
    assert ends(drain(until=timedelta(minutes=10))) == ["retried", "dead"]


def test_immediate_failures_are_in_the_result() -> None:
    with immediate():
        result = tasks.fail_for_good.enqueue()
        assert (result.status, [error.exception_class for error in result.errors]) == (FAILED, [tasks.Boom])
    with immediate(propagate=True), pytest.raises(tasks.Boom):
        tasks.fail_for_good.enqueue()


def test_immediate_inside_of_a_transaction_and_of_a_task() -> None:
    with immediate(), transaction.atomic():
        assert told.atomic_group.enqueue("atomic").status == SUCCESSFUL
        outer = told.enqueue_another.enqueue("inner")
        second = told.aenqueue_another.enqueue("inner of a coroutine")
        assert told.make_group.get_result(outer.return_value).status == SUCCESSFUL
        assert told.make_group.get_result(second.return_value).status == SUCCESSFUL
    assert Group.objects.count() == 3
    assert Attempt.objects.count() == 0


def test_immediate_and_keyboard_interrupt(tmp_path: Any) -> None:
    with immediate(), pytest.raises(KeyboardInterrupt):
        tasks.interrupt.enqueue(str(tmp_path / "journal"))


def test_manual_inside_of_immediate() -> None:
    with immediate():
        with manual() as run:
            result = tasks.add.enqueue(1, 2)
            assert result.status == READY
            assert [ran.value for ran in run()] == [3]
        assert tasks.add.enqueue(1, 2).status == SUCCESSFUL


@immediate()
def test_the_mode_as_a_decorator() -> None:
    assert tasks.add.enqueue(1, 2).return_value == 3


def test_no_mode_is_left_behind() -> None:
    from alkstore_django.testing import modes

    with pytest.raises(ZeroDivisionError), immediate():
        raise ZeroDivisionError
    assert modes._modes == []
    assert tasks.add.enqueue(1, 2).status == READY
