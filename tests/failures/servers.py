"""Throw-away PostgreSQL and MariaDB servers, which a test may stop, freeze and restart.

Each has a folder, a port and a process of its own; it ends with the test run, also with one that is
killed. Servers refuse to run as root, and the run needs root for other things: they get their users.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.processes import comes_true

PATIENCE = 60.0
"""Seconds that a server may take to start or to stop."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server(ABC):
    """A server process. It listens at ``host`` (and at ``more`` addresses) and ``port``."""

    user: str
    """The system user that it runs as."""

    host = "127.0.0.1"

    def __init__(self, more: Sequence[str] = ()) -> None:
        self.addresses = [self.host, *more]
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"alkstore-{self.user}-"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        account = pwd.getpwnam(self.user)
        shutil.chown(self.folder, account.pw_uid, account.pw_gid)
        self._popen: subprocess.Popen[bytes] | None = None
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make the data folder."""

    @abstractmethod
    def command(self) -> list[str]:
        """What runs the server in the foreground."""

    @abstractmethod
    def connect(self) -> Any:
        """A connection of the driver's, in autocommit; raises while the server does not take any."""

    def admitting(self, name: str) -> tuple[str, ...]:
        """Statements that let the user of ``settings`` into a database of that name."""
        return ()

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the owner of the server; the rows of the last one."""
        connection = self.connect()
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    # -- life -------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        """Start it, unless it runs, and wait until it takes connections."""
        if not self.is_running:
            with self.log.open("ab") as log:
                self._popen = subprocess.Popen(
                    self.as_user(*self.command(), setpriv=("--pdeathsig", "KILL")),
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
        assert comes_true(self._answers, PATIENCE), f"{self} does not answer\n{self.log.read_text()}"

    def stop(self, number: signal.Signals) -> None:
        """End it with a signal, and wait for its end."""
        if self._popen is not None:
            self._popen.send_signal(number)
            self._popen.wait(PATIENCE)

    def crash(self) -> None:
        """End all its processes at once, without a word."""
        pids = self.pids()
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped, none of them sees the others die
            for pid in pids:
                _send(pid, number)
        if self._popen is not None:
            self._popen.wait(PATIENCE)
        assert comes_true(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), PATIENCE)

    def freeze(self) -> None:
        """Stop all its processes where they are: connections stay open, and nobody answers."""
        self._send_to_all(signal.SIGSTOP)

    def thaw(self) -> None:
        if self.is_running:
            self._send_to_all(signal.SIGCONT)

    def remove(self) -> None:
        """End it, whatever it does, and delete its folder."""
        if self.is_running:
            for pid in self.pids():
                _send(pid, signal.SIGKILL)
        if self._popen is not None:
            self._popen.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def pids(self) -> list[int]:
        """The process that was started, and its children."""
        assert self._popen is not None
        return [self._popen.pid, *children(self._popen.pid)]

    def _send_to_all(self, number: signal.Signals) -> None:
        for pid in self.pids():
            _send(pid, number)

    def _answers(self) -> bool:
        assert self._popen is not None
        assert self._popen.poll() is None, f"{self} has ended\n{self.log.read_text()}"
        try:
            self.connect().close()
        except self.refusals:
            return False
        return True

    @property
    @abstractmethod
    def refusals(self) -> tuple[type[Exception], ...]:
        """What ``connect`` raises while the server is not there."""

    def as_user(self, *command: str, setpriv: tuple[str, ...] = ()) -> list[str]:
        account = pwd.getpwnam(self.user)
        identity = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
        return ["setpriv", *identity, *setpriv, *command]

    def run(self, *command: str) -> None:
        """Run a program of the server as its user."""
        done = subprocess.run(
            self.as_user(*command), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert done.returncode == 0, done.stdout.decode()

    def __str__(self) -> str:
        return f"{type(self).__name__} on port {self.port}"


class PostgreSQL(Server):
    user = "postgres"
    configuration = {
        "fsync": "off",
        "unix_socket_directories": "",
        "max_connections": "100",
        "shared_buffers": "16MB",
        "log_min_messages": "warning",
    }

    def prepare(self) -> None:
        self._bin = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        self.run(f"{self._bin}/initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", "--no-sync")
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write("host all all samenet trust\n")

    def command(self) -> list[str]:
        addresses = ",".join(self.addresses)
        options = {"port": self.port, "listen_addresses": addresses, **self.configuration}
        flags = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [f"{self._bin}/postgres", "-D", str(self.data), *flags]

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(
            host=self.host, port=self.port, user="postgres", dbname="postgres", autocommit=True
        )

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        import psycopg

        return (psycopg.OperationalError,)

    def settings(self, name: str) -> dict[str, Any]:
        """The entry of ``DATABASES`` for one of its databases."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            "USER": "postgres",
            "HOST": self.host,
            "PORT": str(self.port),
        }


class MariaDB(Server):
    """Temporary tables lie in its own folder: a server that starts removes those of all in ``tmpdir``."""

    user = "mysql"

    def prepare(self) -> None:
        self.run(
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder}",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )

    def command(self) -> list[str]:
        return [
            "mariadbd",
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder}",
            f"--socket={self.folder / 'socket'}",
            f"--bind-address={','.join(self.addresses)}",
            f"--port={self.port}",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=32M",
            "--innodb-flush-log-at-trx-commit=2",
        ]

    def admitting(self, name: str) -> tuple[str, ...]:
        """A user who, unlike root, may not write while the server is read-only."""
        return ("CREATE USER IF NOT EXISTS app", f"GRANT ALL ON {name}.* TO app")

    def connect(self) -> Any:
        import MySQLdb

        connection = MySQLdb.connect(host=self.host, port=self.port, user="root", connect_timeout=5)
        connection.autocommit(True)
        return connection

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        import MySQLdb

        return (MySQLdb.OperationalError,)

    def settings(self, name: str) -> dict[str, Any]:
        """The entry of ``DATABASES`` for one of its databases."""
        return {
            "ENGINE": "django.db.backends.mysql",
            "NAME": name,
            "USER": "app",
            "HOST": self.host,
            "PORT": str(self.port),
            "OPTIONS": {"charset": "utf8mb4"},
        }


def children(parent: int) -> list[int]:
    """The pids of a process's children."""
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended by itself
        os.kill(pid, number)
