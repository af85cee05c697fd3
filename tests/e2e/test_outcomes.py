"""What becomes of a task, by the way it ends. The worker runs in this process: signals can be heard."""

from __future__ import annotations

import json
import sys
import threading
from asyncio import CancelledError
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group

from alkstore_django.backends import AlkstoreBackend
from alkstore_django.compat import TaskResultStatus, task_finished, task_started
from alkstore_django.models import Job, Result, Run
from alkstore_django.queues import Queue
from alkstore_django.runtime import hygiene
from alkstore_django.runtime.observing import Observation
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker
from alkstore_django.signals import task_retried
from tests.app import coroutines, tasks
from tests.processes import Journal
from tests.queue_state import dead, history, live

pytestmark = pytest.mark.django_db(transaction=True)


def work() -> None:
    assert Worker(Options(using="default", batch=True, threads=2, interval=0.02)).run() == 0


def outcome(task: Any, *arguments: Any) -> Any:
    """The result of a task after a worker has done all there was."""
    result = task.enqueue(*arguments)
    work()
    assert not live()
    result.refresh()
    return result


def error_classes(result: Any) -> list[str]:
    return [error.exception_class_path.rpartition(".")[2] for error in result.errors]


@pytest.mark.parametrize("task", [tasks.add, tasks.plain_add, tasks.async_add])
def test_success(task: Any) -> None:
    result = outcome(task, 2, 3)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == 5
    assert (result.attempts, result.errors, history(int(result.id))) == (1, [], [])


def test_an_async_task_uses_the_database() -> None:
    result = outcome(tasks.async_group, "made by a task")
    assert result.return_value == Group.objects.get().pk
    assert Group.objects.get().name == "made by a task"


@pytest.mark.parametrize("task", [tasks.fail, coroutines.fail])
def test_failure_spends_all_attempts(task: Any) -> None:
    result = outcome(task, "no luck")
    assert result.status == TaskResultStatus.FAILED
    assert error_classes(result) == ["Boom", "Boom"]
    assert history(int(result.id)) == ["failed", "failed"]
    assert dead()[int(result.id)].startswith("no luck\nTraceback")


def test_success_after_failures(journal: Journal) -> None:
    result = outcome(tasks.fail_times, journal.path, 3)
    assert result.return_value == 4
    assert result.attempts == 4
    assert error_classes(result) == ["Boom"] * 3


@pytest.mark.parametrize("task", [tasks.fail_for_good, tasks.fail_otherwise])
def test_what_is_not_to_be_retried_is_dead_at_once(task: Any) -> None:
    result = outcome(task)
    assert result.status == TaskResultStatus.FAILED
    assert error_classes(result) == ["Boom"]
    assert set(dead()) == {int(result.id)}


def test_discard(journal: Journal) -> None:
    """Failed, and nobody has to look at it."""
    result = outcome(tasks.discard, journal.path)
    assert result.status == TaskResultStatus.FAILED
    assert error_classes(result) == ["Discard"]
    assert journal.lines == ["run"]
    assert not dead()
    assert Run.objects.get().status == Run.FAILED


def test_retry_asked_for(journal: Journal) -> None:
    result = outcome(tasks.ask_again, journal.path, 0)
    assert result.return_value == 2
    assert error_classes(result) == ["Retry"]


def test_retry_asked_for_later(journal: Journal) -> None:
    job_id = int(tasks.ask_again.enqueue(journal.path, 1000).id)
    assert Worker(Options(using="default", max_tasks=1)).run() == 0
    job = Job.objects.get(pk=job_id)
    assert (job.state, job.attempts) == ("pending", 1)
    assert 999 <= job.run_at - job.created_at <= 1010


@pytest.mark.parametrize("after", [-1, "soon"])
def test_retry_asked_for_badly_is_a_failure(journal: Journal, after: Any) -> None:
    """Of the task, like any other: its backoff holds, and the worker goes on."""
    job_id = int(tasks.ask_again.enqueue(journal.path, after).id)
    assert Worker(Options(using="default", max_tasks=1)).run() == 0
    job = Job.objects.get(pk=job_id)
    assert (job.state, job.attempts) == ("pending", 1)
    assert job.run_at - job.created_at >= 10
    assert history(job_id) == ["failed"]


def test_retry_asked_for_within_the_budget(journal: Journal) -> None:
    result = outcome(tasks.ask_always, journal.path)
    assert journal.lines == ["run", "run"]
    assert error_classes(result) == ["Retry", "Retry"]
    assert set(dead()) == {int(result.id)}


@pytest.mark.parametrize(
    ("task", "error"), [(tasks.return_unserialisable, "TypeError"), (tasks.return_infinity, "ValueError")]
)
def test_a_return_value_that_cannot_be_kept(journal: Journal, task: Any, error: str) -> None:
    """The work was done: it is not done again for the sake of its result."""
    result = outcome(task, journal.path)
    assert result.status == TaskResultStatus.FAILED
    assert error_classes(result) == [error]
    assert "the return value" in dead()[int(result.id)]
    assert journal.lines == ["run"]


@pytest.mark.parametrize("task", [tasks.leave, coroutines.leave])
def test_system_exit_is_a_failure(task: Any) -> None:
    result = outcome(task, 3)
    assert result.status == TaskResultStatus.FAILED
    assert error_classes(result) == ["SystemExit"]
    assert set(dead()) == {int(result.id)}


def test_what_a_task_knows_of_its_attempt() -> None:
    result = outcome(tasks.attempt)
    assert result.return_value == {"attempt": 1, "id": result.id, "workers": 1}


def test_what_a_task_knows_of_its_second_attempt() -> None:
    job_id = int(tasks.attempt.enqueue().id)
    queue = Queue("default")
    claim = queue.claim_one("another")
    assert claim is not None and queue.release(claim, started=True)
    work()
    assert Run.objects.get(pk=job_id).attempts == 2
    assert json.loads(Result.objects.get(pk=job_id).value) == {"attempt": 2, "id": str(job_id), "workers": 2}


@pytest.fixture
def heard() -> Iterator[list[tuple[Any, ...]]]:
    """Signals in the order in which they came: name, sender, status."""
    events: list[tuple[Any, ...]] = []
    signals = {"started": task_started, "finished": task_finished, "retried": task_retried}
    receivers = {}
    for name, signal in signals.items():

        def receive(sender: Any, task_result: Any, name: str = name, **kwargs: Any) -> None:
            events.append((name, sender, task_result.status, len(task_result.errors)))

        receivers[name] = receive
        signal.connect(receive)
    yield events
    for name, signal in signals.items():
        signal.disconnect(receivers[name])


@pytest.mark.parametrize("task", [tasks.add, tasks.async_add])
def test_signals_of_a_success(heard: list[tuple[Any, ...]], task: Any) -> None:
    outcome(task, 1, 2)
    assert heard == [
        ("started", AlkstoreBackend, TaskResultStatus.RUNNING, 0),
        ("finished", AlkstoreBackend, TaskResultStatus.SUCCESSFUL, 0),
    ]


@pytest.mark.parametrize("task", [tasks.fail, coroutines.fail])
def test_signals_of_a_failure(heard: list[tuple[Any, ...]], task: Any) -> None:
    """``task_finished`` once, at the very end."""
    outcome(task)
    assert heard == [
        ("started", AlkstoreBackend, TaskResultStatus.RUNNING, 0),
        ("retried", AlkstoreBackend, TaskResultStatus.READY, 1),
        ("started", AlkstoreBackend, TaskResultStatus.RUNNING, 1),
        ("finished", AlkstoreBackend, TaskResultStatus.FAILED, 2),
    ]


class Disaster(BaseException):
    """Nothing that anybody expects."""


@pytest.mark.parametrize("disaster", [Disaster(), CancelledError(), SystemExit(3), GeneratorExit()], ids=repr)
def test_what_receivers_raise_goes_no_further(disaster: BaseException) -> None:
    """The task has succeeded, and does not run once more."""

    def receive(sender: Any, **kwargs: Any) -> None:
        raise disaster

    job_id = int(tasks.add.enqueue(1, 2).id)
    for signal in (task_started, task_finished):
        signal.connect(receive)
    try:
        assert Worker(Options(using="default", batch=True, threads=1, interval=0.02)).run() == 0
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(receive)
    assert not live() and Run.objects.get().pk == job_id and history(job_id) == []


def test_what_tidies_up_after_a_task_changes_no_outcome(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It has succeeded, and everybody was told."""
    monkeypatch.setattr(hygiene, "_tidy_caches", lambda: 1 / 0)
    job_id = int(tasks.add.enqueue(1, 2).id)
    assert Worker(Options(using="default", batch=True, threads=1, interval=0.02)).run() == 0
    assert Run.objects.get().pk == job_id and history(job_id) == [] and not live()
    assert f"Job id={job_id} of queue=default: what it left could not be tidied up." in caplog.messages


def test_the_thread_survives_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is tried again, like after a failure, and the only thread runs the next one."""
    disasters = [Disaster()]

    def succeed(self: Any, value: Any) -> None:
        if disasters:
            raise disasters.pop()

    monkeypatch.setattr(Observation, "succeed", succeed)
    first, second = (int(tasks.add.enqueue(1, n).id) for n in (1, 2))
    worker = Worker(Options(using="default", threads=1, max_tasks=2, shutdown_timeout=0))
    watchdog = threading.Timer(20, worker.stop)
    watchdog.start()
    try:
        assert worker.run() == 0
    finally:
        watchdog.cancel()
    assert live(id=first, state="pending", attempts=1) == 1
    assert history(first) == ["failed"]
    assert Run.objects.get().pk == second


@pytest.mark.parametrize("task", [tasks.add, tasks.async_add])
@pytest.mark.parametrize("signal", [task_started, task_finished])
@pytest.mark.parametrize("error", [RuntimeError("broken receiver"), SystemExit(1)])
def test_a_receiver_that_raises_fails_no_task(signal: Any, error: BaseException, task: Any) -> None:
    calls = []

    def receive(sender: Any, **kwargs: Any) -> None:
        calls.append(sender)
        raise error

    signal.connect(receive, sender=AlkstoreBackend)
    try:
        result = outcome(task, 1, 2)
    finally:
        signal.disconnect(receive, sender=AlkstoreBackend)
    assert calls == [AlkstoreBackend]
    assert result.return_value == 3


@pytest.mark.parametrize("task", [tasks.fail, coroutines.fail])
def test_receivers_ask_the_database_and_for_the_error(task: Any) -> None:
    """Also those of a coroutine, which are not in the thread of the event loop."""
    seen: list[Any] = []

    def ask(sender: Any, task_result: Any, **kwargs: Any) -> None:
        seen.append((Group.objects.count(), type(sys.exception()).__name__))

    async def wait(sender: Any, task_result: Any, **kwargs: Any) -> None:
        seen.append((await Group.objects.acount(), task_result.status))

    task_finished.connect(ask)
    task_finished.connect(wait)
    try:
        outcome(task)
    finally:
        task_finished.disconnect(ask)
        task_finished.disconnect(wait)
    assert seen == [(0, "Boom"), (0, TaskResultStatus.FAILED)]


def test_threads_let_each_other_run_soon() -> None:
    """While a worker runs, and no longer: the process may have other uses."""
    before = sys.getswitchinterval()
    assert outcome(tasks.switch_interval).return_value == pytest.approx(0.0005)
    assert sys.getswitchinterval() == before
