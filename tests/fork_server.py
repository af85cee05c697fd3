"""Python programs that start in a moment: forks of an interpreter that has imported Django.

    python -m tests.fork_server NUMBER

``ForkServer`` starts that. The number is that of a socket, each message of which asks for one program: JSON
with the arguments of the interpreter and the environment, and two files, the program's output and a socket,
which is told the program's process id and, in the end, its exit code.

A program is a process of its own as if it had been started by hand, but for its parent: none of our code and
no settings have been imported before. Two thirds of the processor time of the tests went into imports.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
READY = b"ready"
PRELOADED = [
    "asyncio",
    "croniter",
    "django.contrib.admin",
    "django.contrib.auth.apps",
    "django.contrib.contenttypes.apps",
    "django.contrib.staticfiles.apps",
    "django.core.management",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.recorder",
]
DRIVERS = {"psycopg": "django.db.backends.postgresql.base", "MySQLdb": "django.db.backends.mysql.base"}


class ForkServer:
    def __init__(self) -> None:
        self._control, theirs = _channel()
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        assert self._control.recv(100) == READY, "the fork server does not start"

    def start(self, arguments: Sequence[str], environment: dict[str, str], output: int) -> Fork:
        """A Python program (``-m module ...``) that writes to this file."""
        wanted = json.dumps({"arguments": arguments, "environment": environment}).encode()
        ours, theirs = _channel()
        with theirs:
            socket.send_fds(self._control, [wanted], [output, theirs.fileno()])
        return Fork(ours)

    def close(self) -> None:
        """Wait for the last of its programs, but not long for one that somebody has left running."""
        self._control.close()
        try:
            self._popen.wait(10)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def _channel() -> tuple[socket.socket, socket.socket]:
    """Two ends between which messages stay apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Fork:
    """The part of ``subprocess.Popen`` that ``Process`` needs."""

    def __init__(self, link: socket.socket) -> None:
        self.returncode: int | None = None
        self._link = link
        self._lock = threading.Lock()
        self.pid = int(link.recv(100))

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._link], [], [], timeout)[0]:
                with self._link:
                    self.returncode = int(self._link.recv(100))
            return self.returncode


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, socket.socket] = {}
        self._woken, self._wakes = socket.socketpair()
        for each in (self._woken, self._wakes):
            each.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the tests

    def serve(self) -> list[str]:
        """Returns in each of the programs, with its arguments; in the server itself it never does."""
        sources = [self._control, self._woken]
        while self._children or self._control in sources:
            readable = select.select(sources, [], [])[0]
            if self._woken in readable:
                self._woken.recv(4096)
                self._reap()
            if self._control in readable:
                message, files, _, _ = socket.recv_fds(self._control, 1 << 20, 2)
                if not message:
                    sources.remove(self._control)
                elif self._fork(*files):
                    return self._become(json.loads(message), files[0])
        sys.exit()

    def _fork(self, output: int, link: int) -> bool:
        """Whether this is the program."""
        pid = os.fork()
        if pid == 0:
            os.close(link)
            return True
        os.close(output)
        self._children[pid] = socket.socket(fileno=link)
        self._children[pid].send(str(pid).encode())
        return False

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with self._children.pop(pid) as link:
                link.send(str(os.waitstatus_to_exitcode(status)).encode())

    def _become(self, wanted: dict[str, Any], output: int) -> list[str]:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (self._control, self._woken, self._wakes, *self._children.values()):
            each.close()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.clear()
        os.environ.update(wanted["environment"])
        time.tzset()
        return wanted["arguments"]


def preload() -> None:
    for name in [*PRELOADED, *(base for driver, base in DRIVERS.items() if importlib.util.find_spec(driver))]:
        importlib.import_module(name)
    gc.freeze()


def run(arguments: list[str]) -> None:
    """What the interpreter does with ``-m module`` and what follows it."""
    sys.orig_argv = [sys.executable, *arguments]
    sys.argv = arguments[1:]
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    preload()
    control.send(READY)
    run(_Server(control).serve())


if __name__ == "__main__":
    main()
