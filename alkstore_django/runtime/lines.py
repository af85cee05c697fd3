"""Connections whose other end is gone without a word: a dead machine, a firewall that has forgotten them,
a file that was replaced.

The kernel goes on sending for a quarter of an hour, or waits for an answer for two hours, and with it
the clerk, whose claims lapse meanwhile. What is alive answers its probes, however long a query takes.
Whoever has a file open that was replaced goes on with the old one, which nobody else sees.
"""

from __future__ import annotations

import os
import socket
from typing import Any
from weakref import WeakKeyDictionary

from django.db import OperationalError, connections
from django.db.backends.signals import connection_created

from alkstore_django.health import limit_all_connecting, limit_idling

PATIENCE = 30
"""Seconds without any sign of life until a connection counts as lost: half of what a claim holds."""

PROBES = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 4,
    "TCP_USER_TIMEOUT": PATIENCE * 1000,  # milliseconds
}
"""When to ask for a sign of life, and when to give up."""

THEIRS = ("keepalives", "tcp_user_timeout")
"""How the options begin with which a project decides all this itself."""

_FILES: WeakKeyDictionary[Any, tuple[int, int]] = WeakKeyDictionary()
"""The file that a connection has opened, by device and number, where its driver has no socket."""


def watch_lines() -> None:
    """From now on every connection of this process notices when its other end is gone (on Linux)."""
    limit_all_connecting()
    connection_created.connect(_watch, dispatch_uid="alkstore_django.runtime.lines")


class Line:
    """The clerk's own connection to its database."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._limited: Any = None

    def check(self) -> None:
        """Before each turn. Raises ``OperationalError`` if it has a file open that was replaced, and what
        the database raises when it is connected anew."""
        connection = connections[self._using]
        if has_another_file(connection):
            raise OperationalError(f"The file of the database {self._using!r} was replaced by another.")
        connection.ensure_connection()
        if connection.connection is not self._limited:
            limit_idling(self._using)
            self._limited = connection.connection


def has_another_file(connection: Any) -> bool:
    opened = _FILES.get(connection) if connection.connection is not None else None
    return opened is not None and _file(connection) not in (None, opened)


def _file(connection: Any) -> tuple[int, int] | None:
    """What identifies the file at the place of the database, if there is one."""
    try:
        found = os.stat(connection.settings_dict["NAME"])
    except OSError:
        return None  # a database in memory, or in the middle of being replaced
    return (found.st_dev, found.st_ino)


def _watch(connection: Any, **kwargs: Any) -> None:
    fileno = getattr(connection.connection, "fileno", None)
    if fileno is None and (file := _file(connection)):
        _FILES[connection] = file
    decided = any(str(name).startswith(THEIRS) for name in connection.settings_dict["OPTIONS"])
    if fileno is None or decided or not hasattr(socket, "TCP_USER_TIMEOUT"):
        return  # no socket; the project knows better; another system
    with socket.socket(fileno=os.dup(fileno())) as line:
        if line.family in (socket.AF_INET, socket.AF_INET6):
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in PROBES.items():
                line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
