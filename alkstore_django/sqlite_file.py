"""What is wrong with the file of a SQLite database, for the system checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Warning

from .filesystems import network_type
from .models import Job

SQLITE_OPTIONS = """"OPTIONS": {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
},"""


def problems(connection: Any) -> Iterator[CheckMessage]:
    """What makes a file of SQLite slow, or lets a crash damage it."""
    ask = Job.objects.db_manager(connection.alias).fetch
    mode = ask("PRAGMA journal_mode")[0][0]
    if mode.lower() != "wal":
        yield Warning(
            f"The SQLite database {connection.alias!r} has the journal mode {mode}, not WAL: "
            "readers and the writer wait for each other.",
            hint=pasted(connection),
            id="alkstore_django.W004",
        )
    if ask("PRAGMA synchronous")[0][0] == 0:
        yield Warning(
            f"The SQLite database {connection.alias!r} has synchronous OFF: "
            "a power cut may destroy the file.",
            hint=pasted(connection),
            id="alkstore_django.W006",
        )
    if kind := network_type(connection.settings_dict["NAME"]):
        yield Warning(
            f"The SQLite database {connection.alias!r} is on a network file system ({kind}): "
            "WAL does not work there, and locks may not hold.",
            hint="Keep it on a disk of the machine that web and workers run on, or use PostgreSQL.",
            id="alkstore_django.W007",
        )


def pasted(connection: Any) -> str:
    return f"Write into DATABASES[{connection.alias!r}]:\n{SQLITE_OPTIONS}"
