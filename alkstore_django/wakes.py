"""What wakes the workers of a database when a job was put in, and why it is not something better."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from django.db import connections

from . import bells
from .conf import settings
from .models import Job
from .models.announcements import bell_directories


@dataclass(frozen=True, slots=True)
class Means:
    """``file`` and ``directories`` are of doorbells; ``watches``: SQLite's ``data_version`` is asked;
    ``listens``: PostgreSQL's ``LISTEN``. ``obstacle`` says why there is not more, if there could be."""

    file: str = ""
    directories: tuple[str, ...] = ()
    watches: bool = False
    listens: bool = False
    obstacle: str = ""

    def __str__(self) -> str:
        if self.listens:
            return "LISTEN"
        if self.directories:
            return f"doorbells in {self.directories[0]}"
        why = f" ({self.obstacle})" if self.obstacle else ""
        return f"{'PRAGMA data_version alone' if self.watches else 'polling alone'}{why}"


def announce(using: str) -> None:
    """Wake the workers for jobs that were put back: after the commit, if there is a transaction."""
    Job.objects.db_manager(using).announce()


def means(using: str) -> Means:
    """What the settings and the place of the database allow."""
    connection: Any = connections[using]
    dialect = Job.objects.db_manager(using).dialect
    if dialect.listen:
        obstacle = _why_not_listening(connection, dialect.can_listen(connection))
        return Means(listens=not obstacle, obstacle=obstacle)
    if not dialect.data_version:
        return Means()
    directories = tuple(filter(_may_hang_in, bell_directories(using)))
    if directories:
        return Means(bells.file_of(connection.settings_dict["NAME"]), directories, watches=True)
    return Means(watches=True, obstacle=_why_no_bell(connection))


def _why_not_listening(connection: Any, is_possible: bool) -> str:
    if not settings.NOTIFY:
        return 'ALKSTORE["NOTIFY"] is False'
    if connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        return "DISABLE_SERVER_SIDE_CURSORS is True, as behind a transaction pooler"
    return "" if is_possible else "psycopg2 is installed, and not psycopg"


def _why_no_bell(connection: Any) -> str:
    if not settings.DOORBELL:
        return 'ALKSTORE["DOORBELL"] is False'
    if not bells.ARE_POSSIBLE:
        return "no UNIX sockets here"
    if connection.is_in_memory_db():
        return "the database is in memory"
    return "no directory for a socket: not writable, or the path is too long"


def _may_hang_in(directory: str) -> bool:
    """Whether this user could make a socket there, as far as rights tell."""
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    return os.path.isdir(directory) and os.access(directory, os.W_OK | os.X_OK)
