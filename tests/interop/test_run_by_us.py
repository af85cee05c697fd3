"""Tasks that honker calls, or has in hand, and ``manage.py alkworker`` runs."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from alkstore_django import queues
from alkstore_django.compat import TaskResultDoesNotExist, TaskResultStatus
from tests.interop import honker, tasks
from tests.interop.honker import HonkerQueue
from tests.interop.processes import finished, wait_for
from tests.interop.shared import SharedFile

CALL = """
import json, sys, tasks

name, args, kwargs = json.loads(sys.argv[1])
print(getattr(tasks, name)(*args, **kwargs).id)
"""


def honker_calls(shared: SharedFile, name: str, *args: Any, **kwargs: Any) -> int:
    """Call a function that honker decorated; the id of its job."""
    return int(honker.run(CALL, json.dumps([name, args, kwargs]), database=shared.path))


def test_honker_calls_a_task_by_our_path_and_we_run_it(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    job_id = honker_calls(shared, "add", 1, b=2)
    row = shared.live(job_id)
    assert row is not None
    assert (row["max_attempts"], row["payload"][:19]) == (4, '{"__honker_task__":')
    result = tasks.add.get_result(str(job_id))
    assert (result.status, result.args, result.kwargs) == (TaskResultStatus.READY, [1], {"b": 2})

    shared.manage("alkworker", "--batch")
    assert their_default.get_result(job_id) == [True, 3]
    assert their_default.get_job(job_id) is None
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 1)
    assert result.task.func is tasks.add.func
    assert result.task.max_attempts == 4


def test_honker_calls_a_task_by_a_given_name_with_priority_and_expiry_and_we_run_it(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    job_id = honker_calls(shared, "send", "customer", subject="é")
    shared.manage("alkworker", "--batch")
    assert their_default.get_result(job_id) == [True, {"by": "us", "to": "customer", "subject": "é"}]
    result = tasks.send.get_result(str(job_id))
    assert (result.task.priority, result.kwargs) == (7, {"subject": "é"})


def test_honker_calls_a_task_with_nan_which_is_no_json_and_we_run_it(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    inner = {"task": "tests.interop.tasks.show", "args": [math.nan]}  # and no kwargs
    job_id = their_default.enqueue({"__honker_task__": inner})
    shared.manage("alkworker", "--batch")
    assert their_default.get_result(job_id) == [True, "nan"]


def test_honker_calls_a_task_that_fails_with_us_and_reads_why(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    job_id = honker_calls(shared, "boom", "no such address")
    shared.manage("alkworker", "--batch")
    [row] = their_default.query("SELECT state, attempts, last_error FROM _honker_jobs")
    assert (row["state"], row["attempts"]) == ("dead", 1)
    first, second, *_, last = row["last_error"].splitlines()
    assert (first, second) == ("no such address", "Traceback (most recent call last):")
    assert last == "ValueError: no such address"
    assert their_default.get_result(job_id) == [False, None]
    result = tasks.boom.get_result(str(job_id))
    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [ValueError]


def test_honker_waits_for_the_result_of_a_task_that_we_run(shared: SharedFile) -> None:
    wait = "import json, sys, tasks; print(json.dumps(tasks.add(20, b=22).get(timeout=30)))"
    with honker.started("-c", wait, database=shared.path, stdout=subprocess.PIPE) as process:
        wait_for(lambda: shared.rows("SELECT 1 FROM _honker_live"), "honker's call")
        shared.manage("alkworker", "--batch")
        assert finished(process) == "42\n"


def test_we_run_a_long_task_and_honker_never_gets_it(
    shared: SharedFile, their_default: HonkerQueue, tmp_path: Path
) -> None:
    started, released = tmp_path / "started", tmp_path / "released"
    job_id = honker_calls(shared, "hold", str(started), str(released))
    with shared.started("alkworker", "--batch", "--visibility-timeout=2") as worker:
        wait_for(started.exists, "our worker to start the task")
        first = their_default.get_job(job_id)["claim_expires_at"]

        def renewed_twice() -> bool:
            assert their_default.claim_one("h") is None
            return bool(their_default.get_job(job_id)["claim_expires_at"] >= first + 2)

        wait_for(renewed_twice, "our worker to renew its claim")
        released.touch()
        finished(worker)
    assert their_default.get_result(job_id) == [True, "let go"]


def test_honker_cancels_what_we_run_and_nothing_of_it_is_kept(
    shared: SharedFile, their_default: HonkerQueue, tmp_path: Path
) -> None:
    started, released = tmp_path / "started", tmp_path / "released"
    result = tasks.hold.enqueue(str(started), str(released))
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with shared.started("alkworker", "--batch", **output) as worker:
        wait_for(started.exists, "our worker to start the task")
        assert their_default.cancel(int(result.id))
        released.touch()
        assert f"Job id={result.id} of queue=default: the claim of attempt 1 was lost" in finished(worker)
    assert their_default.get_result(int(result.id)) == [False, None]
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


def test_honkers_worker_puts_our_task_back_and_we_run_its_second_attempt(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    result = tasks.add.enqueue(1, 2)
    its = their_default.claim_one("h")
    assert its["payload"] == {
        "__honker_task__": {"task": "tests.interop.tasks.add", "args": [1, 2], "kwargs": {}}
    }
    assert their_default.retry(its["id"], "h", 0, "not now")
    shared.manage("alkworker", "--batch")
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 3)
    job = queues.get_job(int(result.id))
    assert job is not None
    assert (job.state, job.attempts) == ("succeeded", 2)


def test_honkers_worker_died_with_our_task_and_we_run_it_again(
    shared: SharedFile, their_default: HonkerQueue
) -> None:
    result = tasks.add.enqueue(1, 2)
    assert their_default.claim_one("h") is not None
    shared.lapse(int(result.id))
    shared.manage("alkworker", "--batch")
    result.refresh()
    assert (result.status, result.return_value, result.worker_ids[0]) == (
        TaskResultStatus.SUCCESSFUL,
        3,
        "h",
    )
    assert len(result.worker_ids) == 2
    assert not their_default.ack(int(result.id), "h")
