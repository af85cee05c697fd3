"""One task cannot poison the others, nor the process: whatever it does to what they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction

from alkstore_django.models import Job
from tests.app import messes, poison, tasks
from tests.processes import Journal, Workers, is_alive
from tests.queue_state import dead, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def enqueued(*calls: Any) -> list[int]:
    """The ids of tasks that are enqueued together, and run in this order by one thread."""
    with transaction.atomic():
        return [int(task.enqueue(*arguments).id) for task, *arguments in calls]


def value(job_id: int) -> Any:
    return tasks.add.get_backend().get_result(str(job_id)).return_value


@pytest.mark.parametrize("options", [[], ["--processes", 1]], ids=["alone", "supervised"])
def test_a_filter_of_the_log_that_raises(workers: Workers, options: list[Any]) -> None:
    """The lines of failed tasks cannot be written: they have failed, and threads and loop go on."""
    bad = enqueued(*[[poison.fail]] * 3, *[[poison.fail_in_the_loop]] * 3)
    good = enqueued([tasks.add, 1, 2], [poison.sleep, 0])
    choosy = {"DJANGO_SETTINGS_MODULE": "tests.e2e.choosy"}
    worker = workers.start("--batch", "--threads", 1, "--async-concurrency", 1, *options, **choosy)
    assert worker.join() == 0
    assert set(dead()) == set(bad) and succeeded() == set(good)
    assert worker.count("could not be logged") >= len(bad)


def test_an_environment_that_was_replaced(workers: Workers) -> None:
    _, look, after = enqueued([poison.replace_environment], [messes.surroundings], [tasks.add, 1, 2])
    worker = workers.start("--batch", "--threads", 1)
    assert worker.join() == 0
    assert succeeded() >= {look, after} and value(look)["environ"] == "as it was"
    assert worker.count("changed what belongs to the whole process: os.environ itself") == 1


@pytest.mark.parametrize(
    "task", [poison.leave_thread, poison.leave_pool, poison.leave_child], ids=["thread", "pool", "child"]
)
@pytest.mark.parametrize("options", [["--batch"], ["--batch", "--processes", 1]], ids=["alone", "supervised"])
def test_threads_that_are_left_behind(workers: Workers, task: Any, options: list[Any]) -> None:
    """Python would wait for them for ever, and nobody would start the next worker."""
    enqueued([task], [tasks.add, 1, 2])
    worker = workers.start(*options, PYTHONHASHSEED="0")  # an interpreter of its own, from beginning to end
    assert worker.join() == 0
    assert len(succeeded()) == 2 and not live()
    worker.wait_for("WARNING .*What tasks have begun does not end .left-behind")


def test_children_end_when_they_are_told_to(workers: Workers) -> None:
    """They have not the handlers of the worker, which only note that a stop was asked for."""
    child, pool = enqueued([poison.terminate_child], [poison.fail_with_a_pool])
    worker = workers.start("--batch", "--threads", 1)
    assert worker.join() == 0
    assert value(child) is True
    assert list(dead()) == [pool] and dead()[pool].startswith("something else went wrong\n")


@pytest.mark.parametrize("fails", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize(
    "task", [poison.fork_and_return, poison.fork_and_return_in_the_loop], ids=["thread", "loop"]
)
@pytest.mark.parametrize("settings", ["tests.settings", "tests.e2e.persistent"], ids=["closed", "kept"])
def test_a_child_that_comes_back_from_its_task(
    workers: Workers, journal: Journal, settings: str, task: Any, fails: bool
) -> None:
    """It is no second worker: it ends, and leaves the connections of the first one as they are."""
    forks = enqueued([messes.surroundings], [task, journal.path, fails])
    later = enqueued(*[[poison.write_pid, journal.path, str(n)] for n in range(3)])
    worker = workers.start("--batch", "--threads", 1, DJANGO_SETTINGS_MODULE=settings)
    assert worker.join() == 0
    assert succeeded() == {*forks, *later} and value(forks[1]) == worker.pid
    lines = dict(line.split() for line in journal.lines)
    assert sorted(lines) == ["0", "1", "2", "child"] and len(journal.lines) == 4
    assert {pid for key, pid in lines.items() if key != "child"} == {str(worker.pid)}
    worker.wait_for("a process that its task has forked came back from it. It ends.")
    workers.wait_until(lambda: not is_alive(int(lines["child"])), "the child has ended")


def test_a_task_that_cancels_all_that_it_finds(workers: Workers, journal: Journal) -> None:
    """The others run once more; a slot of the loop is lost by none."""
    slow = enqueued(*[[poison.sleep, 1, journal.path]] * 3)
    enqueued([poison.cancel_all, journal.path, 3])
    worker = workers.start("--batch", "--async-concurrency", 4)
    assert worker.join() == 0
    assert not live() and not dead() and succeeded() >= set(slow)
    assert journal.lines == ["sleeps"] * 6
    assert worker.count("attempt 1 of 2 failed .*: other code of the event loop") == len(slow)


def test_slots_survive_many_cancellations(workers: Workers) -> None:
    """Also of what has not taken its first step."""
    enqueued(*[[poison.sleep, 0.01], [poison.cancel_all]] * 20)
    worker = workers.start("--batch", "--async-concurrency", 4)
    assert worker.join() == 0
    assert not live() and len(succeeded()) + len(dead()) == 40


def test_an_exit_that_looks_like_the_end(workers: Workers) -> None:
    """A supervisor does not take it for one: there is more to do."""
    guilty, *others = enqueued([poison.exit_in_peace], [tasks.add, 1, 2], [tasks.add, 3, 4])
    options = ("--threads", 1, "--prefetch", 1, "--visibility-timeout", 1)
    supervisor = workers.start("--batch", "--processes", 1, *options)
    assert supervisor.join() == 0
    assert list(dead()) == [guilty] and succeeded() == set(others)
    assert supervisor.count(r"ERROR .*ended with exit code 0 after") == 1


def test_an_output_that_was_closed(workers: Workers) -> None:
    """The exit code says what it should: the process was recycled, and has not crashed."""
    enqueued([poison.close_output], [tasks.add, 1, 2], [tasks.add, 3, 4])
    options = ("--max-tasks", 1, "--threads", 1, "--prefetch", 1)
    supervisor = workers.start("--processes", 1, *options)
    workers.wait_until(lambda: len(succeeded()) == 3, "all are done")
    assert supervisor.stop() == 0
    assert supervisor.count("ERROR") == 0


def test_an_error_output_that_was_closed(workers: Workers) -> None:
    """Nothing can be told any more, and the work goes on."""
    failed, done = enqueued([poison.close_error_output], [tasks.add, 1, 2])
    assert workers.start("--batch", "--threads", 1).join() == 0
    assert list(dead()) == [failed] and succeeded() == {done}


def test_what_raises_while_it_is_read_was_run_once(workers: Workers, journal: Journal) -> None:
    (job_id,) = enqueued([poison.return_lazy, journal.path])
    assert workers.start("--batch").join() == 0
    assert list(dead()) == [job_id] and dead()[job_id].startswith("lazy\n") and journal.lines == ["ran"]


def test_a_stuck_task_does_not_end_the_program_that_calls(tmp_path: Path) -> None:
    """A caller gets an exception; the command line an exit code."""
    free = tmp_path / "free"
    enqueued([poison.stay, str(free)])
    try:
        with pytest.raises(CommandError, match="a task can be neither timed out nor interrupted") as raised:
            call_command("alkworker", batch=True, skip_checks=True, verbosity=0)
    finally:
        free.touch()
    assert raised.value.returncode == 70


def test_a_database_that_commits_nothing_by_itself(workers: Workers) -> None:
    job_id = int(tasks.add.enqueue(1, 2).id)
    for command in (["alkworker"], ["alkscheduler"], ["alkpause", "default"], ["alkhealth"]):
        process = workers.start(*command[1:], command=command[0], DJANGO_SETTINGS_MODULE="tests.e2e.manual")
        assert process.join() == 1
        assert process.count("CommandError: Database 'default' has AUTOCOMMIT off") == 1
    assert Job.objects.get(pk=job_id).attempts == 0
