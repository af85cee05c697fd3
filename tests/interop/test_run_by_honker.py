"""Tasks that we call and honker's own worker runs."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone

from alkstore_django import queues
from alkstore_django.compat import TaskResultDoesNotExist, TaskResultStatus
from tests.interop import honker, tasks
from tests.interop.honker import HonkerQueue
from tests.interop.processes import finished, stop, wait_for
from tests.interop.shared import SharedFile
from tests.processes import is_stopped


@pytest.fixture
def honker_worker(shared: SharedFile) -> Iterator[subprocess.Popen[str]]:
    """``python -m honker worker tasks:database``, until the end of the test; it must end well."""
    command = ("-m", "honker", "worker", "tasks:database", "--concurrency=1")
    with honker.started(*command, database=shared.path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("honker worker: pid=")
        yield process
        assert stop(process) == "honker worker: stopped cleanly\n"


def gone(shared: SharedFile, job_id: int) -> None:
    wait_for(lambda: shared.live(job_id) is None, f"job {job_id} to leave the queue")


@pytest.mark.usefixtures("honker_worker")
def test_we_call_a_task_that_honkers_worker_finishes_and_know_no_result(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    result = tasks.send.enqueue("customer", subject="é")
    gone(shared, int(result.id))
    expected = {"by": "honker", "to": "customer", "subject": "é"}
    wait_for(lambda: their_default.get_result(int(result.id))[0], "honker's result")
    assert their_default.get_result(int(result.id)) == [True, expected]
    assert queues.get_job(int(result.id)) is None
    with pytest.raises(TaskResultDoesNotExist):
        tasks.send.get_result(result.id)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()
    assert not queues.cancel(int(result.id))
    assert queues.requeue([int(result.id)]) == {}
    assert queues.Queue("default").sweep_expired() == 0
    shared.manage("alkworker", "--batch")
    assert shared.manage("alkstatus").strip() == "No queue has a job."
    assert their_default.get_result(int(result.id)) == [True, expected]


@pytest.mark.usefixtures("honker_worker")
def test_we_call_a_task_with_keys_of_ours_beside_the_envelope_and_honkers_worker_runs_it(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    earlier = tasks.add.using(run_after=timezone.now() - timedelta(minutes=1))
    result = earlier.enqueue(1, b=2)
    wait_for(lambda: their_default.get_result(int(result.id)) == [True, 3], "honker's result")


@pytest.mark.usefixtures("honker_worker")
def test_we_see_a_task_run_in_honkers_worker_and_leave_it_alone(shared: SharedFile, tmp_path: Path) -> None:
    started, released = tmp_path / "started", tmp_path / "released"
    result = tasks.hold.enqueue(str(started), str(released))
    wait_for(started.exists, "honker to start the task")
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    assert [name.startswith("honker-worker-") for name in result.worker_ids] == [True]
    with shared.started("alkworker", "--batch") as ours:  # and it waits for what runs
        other = tasks.show.enqueue("us")
        wait_for(lambda: tasks.show.get_result(other.id).is_finished, "our worker to run a task")
        assert ours.poll() is None
        released.touch()
        gone(shared, int(result.id))
        finished(ours)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


@pytest.mark.usefixtures("honker_worker")
def test_we_call_a_task_that_fails_in_honkers_worker_and_read_why(shared: SharedFile) -> None:
    result = tasks.boom.enqueue("no such address")
    gone(shared, int(result.id))
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    seen = queues.get_job(int(result.id))
    assert seen is not None
    assert seen.last_error is not None
    first, second, *_, last = seen.last_error.splitlines()
    assert (first, second) == ("no such address", "Traceback (most recent call last):")
    assert last == "ValueError: no such address"


def test_honkers_worker_does_not_know_our_task_and_we_requeue_and_run_it(
    shared: SharedFile, their_default: HonkerQueue, honker_worker: subprocess.Popen[str]
) -> None:
    result = tasks.only_ours.enqueue()
    gone(shared, int(result.id))
    seen = queues.get_job(int(result.id))
    assert seen is not None
    assert seen.last_error is not None
    assert (seen.state, seen.last_error[:31]) == ("dead", "unknown task: 'shop.only_ours'.")
    with transaction.atomic():  # it has none of its own then, in which it would keep the file locked
        honker_worker.send_signal(signal.SIGSTOP)  # or it would take the job again
        wait_for(lambda: is_stopped(honker_worker.pid), "honker's worker to stand still")
    try:
        assert queues.requeue([int(result.id)]) == {int(result.id): int(result.id)}
        shared.manage("alkworker", "--batch")
    finally:
        honker_worker.send_signal(signal.SIGCONT)
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "run by us")
    assert their_default.get_result(int(result.id)) == [True, "run by us"]
