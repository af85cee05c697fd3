"""``alkworker --processes``: real processes, which are killed, stopped, and recycled."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from tests.app import limits, tasks
from tests.processes import Journal, Process, Workers, is_alive
from tests.queue_state import live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def started(supervisor: Process, number: int = 1) -> list[int]:
    """The processes that the place of that number has had so far."""
    return [int(pid) for pid in re.findall(rf"Worker {number} is process (\d+)\.", supervisor.output)]


def two_ready(workers: Workers, *arguments: object, **environment: str) -> Process:
    supervisor = workers.start("--processes", 2, *arguments, **environment)
    supervisor.wait_for(" serves ", 2)
    return supervisor


def two_busy(workers: Workers, journal: Journal, gate: object, *arguments: object) -> Process:
    """Two processes, each of which runs one task until the gate is there."""
    for name in "ab":
        tasks.hold.enqueue(journal.path, name, str(gate))
    supervisor = workers.start("--processes", 2, "--threads", 1, *arguments)
    workers.wait_until(lambda: sorted(journal.lines) == ["start a", "start b"], "both run a task")
    return supervisor


# -- death ------------------------------------------------------------------------------------------


def test_a_killed_process_is_replaced(workers: Workers, journal: Journal) -> None:
    supervisor = two_ready(workers)
    (victim,), (other,) = started(supervisor), started(supervisor, 2)
    os.kill(victim, signal.SIGKILL)
    supervisor.wait_for(rf"ERROR alkworker Worker 1: process {victim} was ended by SIGKILL after [\d.]+ s;")
    supervisor.wait_for(" serves ", 3)
    assert [len(started(supervisor)), started(supervisor, 2)] == [2, [other]]
    tasks.write.enqueue(journal.path, "later")
    workers.wait_until(lambda: journal.keys == ["later"], "work goes on")
    assert supervisor.stop() == 0


def test_processes_end_when_their_supervisor_is_killed(
    workers: Workers, journal: Journal, gate: Path
) -> None:
    """Gracefully: nobody else would tell them."""
    supervisor = two_busy(workers, journal, gate)
    pids = [*started(supervisor), *started(supervisor, 2)]
    supervisor.send(signal.SIGKILL)
    supervisor.wait_for("INFO .* stops; it waits for 1 tasks", 2)
    gate.touch()
    workers.wait_until(lambda: not any(map(is_alive, pids)), "they have ended")
    assert supervisor.join() == -signal.SIGKILL
    assert sorted(journal.lines)[:2] == ["end a", "end b"]
    assert not live()


def test_a_crash_loop_is_slowed_and_told(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "extra_tasks.py").write_text("raise ValueError('broken')")
    environment = {"DJANGO_SETTINGS_MODULE": "tests.e2e.extra", "PYTHONPATH": str(tmp_path)}
    supervisor = workers.start("--processes", 1, **environment)
    told = r"ERROR alkworker Worker 1: process \d+ ended with exit code 1 after [\d.]+ s"
    supervisor.wait_for(told + "; the next start is in 1 s")
    supervisor.wait_for(told + ", crash 2 in a row; the next start is in 2 s")
    supervisor.wait_for(told + ", crash 3 in a row; the next start is in [345] s")
    assert "ValueError: broken" in supervisor.output
    assert supervisor.stop(patience=5) == 1


def test_a_crash_is_seen_whatever_the_process_has_started(
    workers: Workers, tmp_path: Path, gate: Path
) -> None:
    """Before a worker has taken its standard input away, it is that of what settings start."""
    (tmp_path / "settings_with_a_daemon.py").write_text(
        "import os, subprocess, sys\n"
        "from tests.settings import *\n"
        "if 'ALKWORKER_NUMBER' in os.environ:\n"
        "    wait = 'import os, sys, time\\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)'\n"
        "    elsewhere = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}\n"
        f"    subprocess.Popen([sys.executable, '-c', wait, {str(gate)!r}], **elsewhere)\n"
        "    sys.exit(3)\n"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "settings_with_a_daemon", "PYTHONPATH": str(tmp_path)}
    supervisor = workers.start("--processes", 1, **environment)
    try:
        supervisor.wait_for(r"ERROR alkworker Worker 1: process \d+ ended with exit code 3 after")
        supervisor.wait_for("crash 2 in a row")
        assert supervisor.stop(patience=5) == 1
    finally:
        gate.touch()


# -- stop -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_one_signal_lets_running_tasks_finish(
    workers: Workers, journal: Journal, gate: Path, number: signal.Signals
) -> None:
    supervisor = two_busy(workers, journal, gate)
    supervisor.send(number)
    supervisor.wait_for("INFO .* stops; it waits for 1 tasks", 2)
    later = int(tasks.nothing.enqueue().id)
    gate.touch()
    assert supervisor.join() == 0
    assert sorted(journal.lines)[:2] == ["end a", "end b"]
    assert live(id=later, attempts=0) == live() == 1


def test_two_signals_interrupt(workers: Workers, journal: Journal) -> None:
    supervisor = two_busy(workers, journal, "/nowhere", "--shutdown-timeout", 600)
    supervisor.send(signal.SIGTERM)
    supervisor.wait_for("INFO .* stops; it waits for 1 tasks", 2)
    supervisor.send(signal.SIGTERM)
    assert supervisor.join() == 1
    assert live(state="pending", attempts=1) == live() == 2


@pytest.mark.parametrize("supervisor_first", [True, False])
def test_a_signal_to_all_is_one_signal(
    workers: Workers, journal: Journal, gate: Path, supervisor_first: bool
) -> None:
    """A terminal's Ctrl-C and a service manager's TERM reach every process."""
    supervisor = two_busy(workers, journal, gate)
    pids = [*started(supervisor), *started(supervisor, 2)]
    for pid in [supervisor.pid, *pids] if supervisor_first else [*pids, supervisor.pid]:
        os.kill(pid, signal.SIGINT)
    supervisor.wait_for("INFO .* stops; it waits for 1 tasks", 2)
    gate.touch()
    assert supervisor.join() == 0
    assert not live()


def test_a_process_that_does_not_end_is_killed(workers: Workers) -> None:
    supervisor = two_ready(workers, "--shutdown-timeout", 0)
    (hung,) = started(supervisor)
    os.kill(hung, signal.SIGSTOP)
    assert supervisor.stop() == 1
    assert supervisor.count(f"ERROR alkworker Worker 1 does not end: process {hung} is killed.") == 1
    assert not is_alive(hung)


# -- replacement ------------------------------------------------------------------------------------


def test_recycled_processes_are_replaced_at_once(workers: Workers, journal: Journal) -> None:
    for number in range(3):
        tasks.write.enqueue(journal.path, number)
    supervisor = workers.start("--processes", 1, "--threads", 1, "--max-tasks", 1)
    workers.wait_until(lambda: not live(), "all is done")
    assert len({*journal.pids}) == 3
    assert supervisor.stop() == 0
    assert len(started(supervisor)) >= 3
    assert supervisor.count(" ERROR ") == 0


def test_a_process_with_a_stuck_task_is_replaced_at_once(workers: Workers, journal: Journal) -> None:
    limits.block_in_c.enqueue(journal.path, "/nowhere")
    supervisor = workers.start("--processes", 1)
    supervisor.wait_for("makes room for another: a task goes on although its time is over")
    later = int(tasks.nothing.enqueue().id)
    workers.wait_until(lambda: later in succeeded(), "another process runs what comes later")
    assert len(started(supervisor)) == 2
    assert supervisor.count("ERROR alkworker ") == 0
    assert supervisor.stop() == 0


def test_a_process_that_was_stopped_alone_is_replaced(workers: Workers) -> None:
    supervisor = two_ready(workers)
    os.kill(started(supervisor)[0], signal.SIGTERM)
    supervisor.wait_for(" serves ", 3)
    assert supervisor.count(" ERROR ") == 0
    assert supervisor.stop() == 0


def test_batch_ends_with_the_last_process(workers: Workers, journal: Journal) -> None:
    """A process that is recycled or killed before all is done is replaced, one that is through is not."""
    for number in range(6):
        tasks.write.enqueue(journal.path, number)
    supervisor = workers.start("--processes", 2, "--threads", 1, "--batch", "--max-tasks", 2)
    assert supervisor.join() == 0
    assert sorted(journal.keys) == list("012345")
    assert not live()


def test_batch_ends_when_it_cannot_begin(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "extra_tasks.py").write_text("raise ValueError('broken')")
    environment = {"DJANGO_SETTINGS_MODULE": "tests.e2e.extra", "PYTHONPATH": str(tmp_path)}
    supervisor = workers.start("--processes", 2, "--batch", **environment)
    assert supervisor.join() == 1
    assert [len(started(supervisor, number)) for number in (1, 2)] == [1, 1]


def test_max_idle_ends_with_the_last_process(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = int(tasks.hold.enqueue(journal.path, "held", str(gate)).id)
    supervisor = workers.start("--processes", 2, "--max-idle", 1)
    workers.wait_until(lambda: journal.lines == ["start held"], "one has something to do")
    supervisor.wait_for("it had nothing to do for 1 s")
    assert supervisor.is_running
    gate.touch()
    assert supervisor.join() == 0
    assert succeeded() == {job_id}
    assert [len(started(supervisor, number)) for number in (1, 2)] == [1, 1]


def test_a_hang_up_renews_one_after_the_other(workers: Workers, journal: Journal, gate: Path) -> None:
    supervisor = two_busy(workers, journal, gate)
    supervisor.send(signal.SIGHUP)
    supervisor.wait_for("INFO alkworker-1 .* stops; it waits for 1 tasks")
    gate.touch()
    supervisor.wait_for(r"Worker 2 is process", 2)
    supervisor.wait_for(r"INFO alkworker-\d .* serves ", 4)
    assert supervisor.stop() == 0
    order = re.findall(r"Worker (\d) is process|alkworker-(\d) Worker \S+ ends", supervisor.output)
    assert [begun or f"{ended} ends" for begun, ended in order][:6] == [
        *("1", "2"),
        *("1 ends", "1"),
        *("2 ends", "2"),
    ]
    assert supervisor.count(" ERROR ") == 0
    assert not live()


def test_a_hang_up_with_broken_code_leaves_the_others(workers: Workers, tmp_path: Path) -> None:
    module = tmp_path / "extra_tasks.py"
    module.write_text("")
    environment = {"DJANGO_SETTINGS_MODULE": "tests.e2e.extra", "PYTHONPATH": str(tmp_path)}
    supervisor = two_ready(workers, **environment)
    (other,) = started(supervisor, 2)
    module.write_text("raise ValueError('broken')")
    supervisor.send(signal.SIGHUP)
    supervisor.wait_for("Worker 1: .* crash 2 in a row")
    assert is_alive(other)
    module.write_text("fixed = 'now'")
    supervisor.wait_for("Worker 2 is process", 2)
    supervisor.wait_for(" serves ", 4)
    assert supervisor.stop() == 0


# -- what they share ----------------------------------------------------------------------------------


def opened(pid: int) -> dict[int, str]:
    """The open files of a process, by number."""
    found = {}
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found[int(path.name)] = os.readlink(path)
        except FileNotFoundError:
            continue
    return found


def test_descriptors(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "extra_tasks.py").write_text("")
    environment = {"DJANGO_SETTINGS_MODULE": "tests.e2e.extra", "PYTHONPATH": str(tmp_path)}
    supervisor = two_ready(workers, checks=True, **environment)
    above = opened(supervisor.pid)
    (first,), (second,) = started(supervisor), started(supervisor, 2)
    below = [opened(pid) for pid in (first, second)]

    # One socket is that of the settings, two are the lifelines; none leads to a database.
    assert sum(name.startswith("socket:") for name in above.values()) == 3
    assert not any("sqlite3" in name for name in above.values())

    standard = {above[1], above[2], os.devnull}
    shared = [(set(above.values()) & set(each.values())) - standard for each in below]
    assert shared == [set(), set()]
    assert not (set(below[0].values()) & set(below[1].values())) - standard - database_files()
    assert [each[0] for each in below] == [os.devnull, os.devnull], "what tasks start reads no lifeline"
    assert supervisor.stop() == 0


def database_files() -> set[str]:
    name = str(connection.settings_dict["NAME"])
    return {os.path.realpath(f"{name}{ending}") for ending in ("", "-wal", "-shm")}


@pytest.mark.only("postgresql")
def test_sessions(workers: Workers, tmp_path: Path) -> None:
    """What the server knows: each process names its sessions after itself."""
    (tmp_path / "extra_tasks.py").write_text("")
    environment = {"DJANGO_SETTINGS_MODULE": "tests.e2e.extra", "PYTHONPATH": str(tmp_path)}
    supervisor = two_ready(workers, checks=True, **environment)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"
        )
        names = {name for (name,) in cursor.fetchall() if name.startswith("process ")}
    assert names == {f"process {pid}" for pid in (*started(supervisor), *started(supervisor, 2))}
    assert supervisor.stop() == 0


def test_names_of_the_workers(workers: Workers) -> None:
    supervisor = two_ready(workers, "--worker-id", "night")
    for number in (1, 2):
        (pid,) = started(supervisor, number)
        assert supervisor.count(f"INFO alkworker-{number} Worker night-{number}-{pid} serves ") == 1
    assert supervisor.stop() == 0


def test_health_files(workers: Workers, tmp_path: Path) -> None:
    supervisor = two_ready(workers, "--health-file", tmp_path / "health.json")
    for number in (1, 2):
        path, (pid,) = tmp_path / f"health-{number}.json", started(supervisor, number)
        workers.wait_until(
            lambda path=path, pid=pid: path.exists() and json.loads(path.read_text())["pid"] == pid
        )
    assert supervisor.stop() == 0
    assert not [*tmp_path.glob("health*")]


# -- nonsense -----------------------------------------------------------------------------------------


def test_nonsense_starts_nothing(workers: Workers) -> None:
    for arguments, line in {
        ("--database", "nowhere"): "CommandError: There is no database 'nowhere'; there are default, other.",
        ("--worker-id", " "): "CommandError: The worker name ' ' begins or ends with white space.",
        ("--reload",): "CommandError: --reload and --processes do not go together.",
    }.items():
        supervisor = workers.start("--processes", 2, *arguments)
        assert supervisor.join() == 1
        assert supervisor.lines == [line]


def test_a_caller_cannot_be_started_again() -> None:
    with pytest.raises(CommandError, match="need a command line that can be started again"):
        call_command("alkworker", "--processes", "2")
