"""An empty place for the demo: a directory for itself alone, and a database made anew."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.core.files import locks


class InUse(Exception):
    """Somebody else works with what the demo is about to replace."""


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Hold the directory while the demo runs. Raises ``InUse`` when another demo holds it."""
    with (directory / "lock").open("w") as file:
        if not locks.lock(file, locks.LOCK_EX | locks.LOCK_NB):
            raise InUse("another demo is running")
        yield


def clear(directory: Path) -> None:
    """Remove the files that the last demo left beside its database."""
    for pattern in ("mail/*.log", "greylist/*", "*.log"):
        for path in directory.glob(pattern):
            path.unlink()


def recreate(connection: Any) -> None:
    """Replace the connection's database by an empty one. Raises ``InUse``, and what the database raises."""
    connection.close()
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        remove_file(Path(name))
        return
    quoted = connection.ops.quote_name(name)
    charset = " CHARACTER SET utf8mb4" if connection.vendor == "mysql" else ""
    with warnings.catch_warnings():
        # Where no PostgreSQL answers, Django warns before it raises.
        warnings.simplefilter("ignore", RuntimeWarning)
        # Its own way to a server before there is a database:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {quoted}")
            cursor.execute(f"CREATE DATABASE {quoted}{charset}")


def remove_file(path: Path) -> None:
    """Remove an SQLite database, unless a process has it open: that one would go on with its log files."""
    if path.exists():
        leave_wal(path)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def leave_wal(path: Path) -> None:
    """Only whoever has the file for itself can switch its journal. Raises ``InUse``."""
    with closing(sqlite3.connect(path, timeout=1)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            raise InUse(f"a worker or a web server works on its database ({error})") from error
        except sqlite3.DatabaseError:
            return  # it is no database, then nobody works on it either
