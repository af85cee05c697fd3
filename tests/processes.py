"""Real processes for the tests: started, watched with deadlines, always reaped, their output kept."""

from __future__ import annotations

import atexit
import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from django.db import transaction

from alkstore_django.models import Job
from tests.fork_server import ROOT, Fork, ForkServer

PATIENCE = 30.0
"""Seconds until a wait has failed: much more than anything here takes, on a busy machine too."""


class Process:
    """A Python program (``-m module ...``) whose output, both streams, is read line by line.

    ``within`` is a command that runs another in its place, such as ``ip netns exec NAME``.
    """

    def __init__(self, *arguments: object, within: Sequence[str] = (), **environment: str) -> None:
        self.command = [str(argument) for argument in arguments]
        self.lines: list[str] = []
        self._output, output = os.pipe()
        try:
            self._popen = _started(self.command, within, environment, output)
        finally:
            os.close(output)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    def count(self, pattern: str) -> int:
        """How many lines so far match."""
        return sum(bool(re.search(pattern, line)) for line in list(self.lines))

    def wait_for(self, pattern: str, times: int = 1) -> None:
        """Wait until ``times`` lines of the output match; fail when it ends without them."""
        what = f"{times} x {pattern!r}"
        wait_until(lambda: self.count(pattern) >= times or not self._reader.is_alive(), self, what=what)
        assert self.count(pattern) >= times, f"ended without {what}\n{self}"

    def freeze(self) -> None:
        """Stop it where it is, but not in a transaction that keeps others from jobs or an SQLite file.

        On a server such a transaction lasts ten seconds more, in an SQLite file as long as the process.
        """
        for _ in range(round(PATIENCE)):
            with transaction.atomic():
                self.send(signal.SIGSTOP)  # which returns before the process stands still
                wait_until(lambda: is_stopped(self.pid), self, what="it stands still")
            if comes_true(_no_job_is_locked, 0.5):  # others lock them for moments only
                return
            self.send(signal.SIGCONT)
        raise AssertionError(f"in a transaction whenever it is stopped\n{self}")

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def join(self, patience: float = PATIENCE) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        try:
            code = self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not ended after {patience} s\n{self}") from None
        self._reader.join()
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM, patience: float = PATIENCE) -> int:
        """Send the signal and wait for the end."""
        self.send(number)
        return self.join(patience)

    def reap(self) -> None:
        """End it, whatever it does."""
        if self.is_running:
            self._popen.kill()
        self._popen.wait()
        self._reader.join()

    def _read(self) -> None:
        with open(self._output, encoding="utf-8", errors="backslashreplace") as stream:
            for line in stream:
                self.lines.append(line.rstrip("\n"))

    def __str__(self) -> str:
        state = "running" if self.is_running else f"ended with {self._popen.returncode}"
        return f"--- {' '.join(self.command)} (pid {self.pid}, {state})\n{self.output}"


def _started(
    command: list[str], within: Sequence[str], environment: dict[str, str], output: int
) -> subprocess.Popen[bytes] | Fork:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    if command[0] == "-m" and not within and _is_our_python(environment):
        return _fork_server().start(command, environment, output)
    return subprocess.Popen(
        [*within, sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def _is_our_python(environment: dict[str, str]) -> bool:
    """Whether the variables that an interpreter looks at when it starts are those of this process."""
    ours, theirs = (
        {name: value for name, value in each.items() if name.startswith("PYTHON")}
        for each in ({**os.environ, "PYTHONUNBUFFERED": "1"}, environment)
    )
    return ours == theirs


@functools.cache
def _fork_server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.close)
    return server


class Workers:
    """The ``alkworker`` processes (and others) of one test."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.environment = {"DJANGO_SETTINGS_MODULE": "tests.settings"}
        """What all of them find in their environment, unless they are started with something else."""
        self.within: Sequence[str] = ()
        """See ``Process``."""

    def start(
        self, *arguments: object, command: str = "alkworker", checks: bool = False, **environment: str
    ) -> Process:
        """Start ``manage.py alkworker`` with these arguments."""
        # The system checks ask a MySQL server for every alias, also for those that no test has made.
        skip = () if checks else ("--skip-checks",)
        return self.run("-m", "django", command, *skip, *arguments, **environment)

    def ready(self, *arguments: object, **environment: str) -> Process:
        """Start a worker and wait until it serves."""
        worker = self.start(*arguments, **environment)
        worker.wait_for(" serves ")
        return worker

    def run(self, *arguments: object, **environment: str) -> Process:
        """Start any Python program."""
        process = Process(*arguments, within=self.within, **{**self.environment, **environment})
        self.processes.append(process)
        return process

    def wait_until(self, condition: Callable[[], object], what: str = "", patience: float = PATIENCE) -> None:
        wait_until(condition, *self.processes, what=what, patience=patience)

    def reap(self) -> None:
        for process in self.processes:
            process.reap()
            print(process)  # pytest shows it when the test failed


def wait_until(
    condition: Callable[[], object], *processes: Process, what: str = "", patience: float = PATIENCE
) -> None:
    """Poll the condition until it is true; fail, with the output of the processes, when it never is."""
    if not comes_true(condition, patience):
        outputs = "\n".join(map(str, processes))
        raise AssertionError(f"in vain for {patience} s: {what or condition}\n{outputs}")


def comes_true(condition: Callable[[], object], patience: float) -> bool:
    """Poll the condition, the less often the longer it takes; whether it was true within so many seconds."""
    start = time.monotonic()
    while not condition():
        passed = time.monotonic() - start
        if passed > patience:
            return False
        time.sleep(min(max(0.02, passed / 10), 0.2))
    return True


def _no_job_is_locked() -> bool:
    with transaction.atomic():
        free = set(Job.objects.select_for_update(skip_locked=True).values_list("pk", flat=True))
        return free >= set(Job.objects.values_list("pk", flat=True))


def is_alive(pid: int) -> bool:
    """Whether the process works: one that has ended may wait for its parent, who has ended too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def is_stopped(pid: int) -> bool:
    """Whether each thread of the process has been stopped by SIGSTOP."""
    try:
        tasks = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # one has just ended
        return False
    return {stat.rpartition(")")[2].split()[0] for stat in tasks} == {"T"}


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [each for child in children for each in (child, *descendants(child))]


class Journal:
    """The file in which tasks of ``tests.app.tasks`` write lines."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    @property
    def lines(self) -> list[str]:
        path = Path(self.path)
        return path.read_text().splitlines() if path.exists() else []

    @property
    def keys(self) -> list[str]:
        """The lines of ``write`` and ``kill_own_process`` without the process."""
        return [line.rpartition(" ")[0] for line in self.lines]

    @property
    def pids(self) -> list[int]:
        return [int(line.rpartition(" ")[2]) for line in self.lines]

    def pids_of(self, key: str) -> list[int]:
        """The processes that wrote the line."""
        return [int(line.rpartition(" ")[2]) for line in self.lines if line.rpartition(" ")[0] == key]


@pytest.fixture
def workers() -> Iterator[Workers]:
    started = Workers()
    try:
        yield started
    finally:
        started.reap()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The file that ``hold`` waits for: ``touch`` it to let the tasks go on."""
    return tmp_path / "gate"
