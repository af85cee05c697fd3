"""``@task(atomic=True)``: what the task did and the end of its job are there together, or neither."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, connections
from django.db.backends.signals import connection_created

from alkstore_django.compat import TaskResultStatus, task_finished, task_started
from alkstore_django.models import Job, Run
from alkstore_django.queues import Queue
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker
from tests.app import atomic
from tests.factories import change
from tests.processes import Journal, wait_until
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def work(**options: Any) -> None:
    given = {"using": "default", "batch": True, "threads": 2, "interval": 0.02} | options
    assert Worker(Options(**given)).run() == 0


def outcome(task: Any, *arguments: Any) -> Any:
    """The result of a task after a worker has done all there was."""
    result = task.enqueue(*arguments)
    work()
    assert not live()
    result.refresh()
    return result


def groups() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def test_success() -> None:
    result = outcome(atomic.make_group, "made")
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert (result.return_value, result.attempts) == ("made", 1)
    assert groups() == ["made"]
    assert history(int(result.id)) == []


def test_a_failure_keeps_the_attempt_and_not_the_effects(journal: Journal) -> None:
    result = outcome(atomic.fail_times, journal.path, "run", 2)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.attempts == 3
    assert groups() == ["run 3"]
    assert journal.lines == ["run", "run", "run", "committed 3"]
    assert history(int(result.id)) == ["failed", "failed"]
    assert [error.exception_class_path for error in result.errors] == ["tests.app.atomic.Boom"] * 2


def test_the_last_failure_is_a_dead_letter(journal: Journal) -> None:
    result = outcome(atomic.fail_times, journal.path, "run", 9)
    assert result.status == TaskResultStatus.FAILED
    assert groups() == []
    assert history(int(result.id)) == ["failed"] * 3
    assert dead()[int(result.id)].startswith("run 3\nTraceback")


def test_discard_undoes_the_effects() -> None:
    result = outcome(atomic.discard, "made")
    assert result.status == TaskResultStatus.FAILED
    assert (groups(), dead()) == ([], {})
    assert Run.objects.get().status == Run.FAILED


def test_retry_undoes_the_effects(journal: Journal) -> None:
    result = outcome(atomic.ask_again, journal.path, "made")
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert groups() == ["made"]


def test_a_return_value_that_cannot_be_kept_undoes_the_effects() -> None:
    result = outcome(atomic.return_unserialisable, "made")
    assert result.status == TaskResultStatus.FAILED
    assert groups() == []
    assert history(int(result.id)) == ["failed"]


def test_what_fails_at_the_commit_is_a_failure(journal: Journal) -> None:
    """Deferred constraints on SQLite and PostgreSQL; the clerk settles it, with the ordinary fence."""
    result = outcome(atomic.break_at_commit, journal.path)
    assert result.status == TaskResultStatus.FAILED
    assert journal.lines == ["run", "run"]
    assert groups() == []
    assert history(int(result.id)) == ["failed", "failed"]
    assert {error.exception_class_path for error in result.errors} == {"django.db.utils.IntegrityError"}


def test_callbacks_of_the_commit_run_after_it(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    result = outcome(atomic.with_callbacks, journal.path)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert journal.lines == ["inside True, then False"]
    assert groups() == ["callbacks"]
    assert "is done; a callback of its commit failed" in caplog.text


def test_a_durable_block_inside_is_refused() -> None:
    result = outcome(atomic.nested_durable)
    assert result.status == TaskResultStatus.FAILED
    assert "durable" in dead()[int(result.id)]


def test_a_task_that_cancels_its_own_job(caplog: pytest.LogCaptureFixture) -> None:
    result = outcome(atomic.cancel_own_job, "made")
    assert groups() == ["made"]
    assert result.status == TaskResultStatus.FAILED
    assert Run.objects.get().status == Run.CANCELLED
    assert "was lost" not in caplog.text


def test_another_database_is_refused_at_the_call(settings: Any) -> None:
    package = "alkstore_django.backends.AlkstoreBackend"
    settings.TASKS = {"default": {"BACKEND": package, "QUEUES": [], "OPTIONS": {"DATABASE": "other"}}}
    for enqueue in (lambda: atomic.hold.enqueue(1, 2, 3), lambda: atomic.hold.enqueue_many([(1, 2, 3)])):
        with pytest.raises(ValueError, match="is atomic in database 'default', and its job is in 'other'"):
            enqueue()


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_another_database_is_refused_in_the_worker(journal: Journal) -> None:
    envelope = {"task": "tests.app.atomic.hold", "args": [journal.path, "x", "y"]}
    job_id = Queue("default", using="other").enqueue({"__honker_task__": envelope}, max_attempts=1)
    work(using="other", queues=["default"])
    letters = dead_in_other()
    assert "is atomic in database 'default', and its job is in 'other'" in letters[job_id]
    assert journal.lines == []


def dead_in_other() -> dict[int, str]:
    from alkstore_django.models import DeadJob

    return dict(DeadJob.objects.using("other").values_list("id", "last_error"))


def test_finished_is_told_after_the_commit() -> None:
    seen: list[tuple[str, bool, int]] = []

    def note(name: str) -> Any:
        def receiver(**kwargs: Any) -> None:
            seen.append((name, connection.in_atomic_block, live()))

        return receiver

    started, finished = note("started"), note("finished")
    task_started.connect(started)
    task_finished.connect(finished)
    try:
        outcome(atomic.make_group, "made")
    finally:
        task_started.disconnect(started)
        task_finished.disconnect(finished)
    assert seen == [("started", True, 1), ("finished", False, 0)]


def test_what_was_committed_is_told_although_its_answer_was_lost() -> None:
    told: list[tuple[Any, Any]] = []
    cut: list[str] = []

    def finished(task_result: Any, **kwargs: Any) -> None:
        told.append((task_result.status, task_result.attempts))

    def connected(connection: Any, **kwargs: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            connection._commit = partial(lose_the_answer, connection._commit)

    def lose_the_answer(commit: Any) -> None:
        commit()
        if not cut:
            cut.append("once")
            raise OperationalError("the server closed the connection")

    task_finished.connect(finished)
    connection_created.connect(connected)
    try:
        result = outcome(atomic.make_group, "made")
    finally:
        connection_created.disconnect(connected)
        task_finished.disconnect(finished)
    assert cut and told == [(TaskResultStatus.SUCCESSFUL, 1)]
    assert (result.status, result.return_value, groups()) == (TaskResultStatus.SUCCESSFUL, "made", ["made"])


def test_a_lost_claim_does_not_run(caplog: pytest.LogCaptureFixture) -> None:
    """Its worker has it in hand, and finds at the beginning that it has lapsed or belongs to another."""
    job_id = int(atomic.make_group.enqueue("made").id)
    worker = Worker(Options(using="default", threads=1, interval=0.02))
    hand_out = worker.executors.hand_out

    def lose(assignments: list[Any]) -> None:
        if assignments:
            change(job_id, worker_id="another")
        hand_out(assignments)

    worker.executors.hand_out = lose  # type: ignore[method-assign]

    def run() -> None:
        worker.run()
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_until(lambda: "the claim of attempt 1 was lost" in caplog.text)
    finally:
        worker.stop()
        thread.join()
    assert groups() == []
    assert Job.objects.get().worker_id == "another"
    assert not succeeded()


@pytest.mark.only("postgresql", "mysql")
def test_a_lost_connection_undoes_the_run(journal: Journal) -> None:
    result = outcome(atomic.lose_connection, journal.path)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert journal.lines == ["run", "run"]
    assert groups() == ["effect"]
    assert history(int(result.id)) == ["failed"]


@pytest.mark.only("sqlite")
def test_a_full_disk_undoes_the_run(journal: Journal) -> None:
    result = outcome(atomic.fill_disk, journal.path)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert journal.lines == ["run", "run"]
    assert groups() == ["effect"]
    assert history(int(result.id)) == ["failed"]
    assert "full" in result.errors[0].traceback


def test_a_run_out_of_time_is_undone(journal: Journal) -> None:
    result = outcome(atomic.out_of_time, journal.path)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert groups() == ["effect"]
    assert history(int(result.id)) == ["failed"] * (result.attempts - 1) != []
    told = {error.exception_class_path for error in result.errors}
    assert told == {"alkstore_django.exceptions.TaskTimedOut"}


@pytest.mark.only("sqlite")
def test_where_others_have_to_wait_no_run_is_endless(journal: Journal) -> None:
    result = outcome(atomic.endless, journal.path)
    assert result.status == TaskResultStatus.FAILED
    assert groups() == []
    assert "longer than its timeout of 2 s" in dead()[int(result.id)]
