"""Something that hears what wakes workers, and is none: a socket on SQLite, a session on PostgreSQL."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Protocol

from django.db import connections

from alkstore_django import bells
from alkstore_django.models.announcements import bell_directories
from alkstore_django.sql import tables


class Ear(Protocol):
    def rings(self) -> int:
        """How often it rang since the last question."""


class Bell:
    def __init__(self, using: str, channel: str, suffix: str) -> None:
        directory = bell_directories(using)[0]
        os.makedirs(directory, exist_ok=True)
        self.path = os.path.join(directory, f"ear{suffix}")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self.path)

    def rings(self) -> int:
        count = 0
        try:
            while True:
                self._socket.recv(1)
                count += 1
        except BlockingIOError:
            return count

    def close(self) -> None:
        self._socket.close()
        os.unlink(self.path)
        with suppress(OSError):  # there is another
            os.rmdir(os.path.dirname(self.path))


class Session:
    def __init__(self, using: str, channel: str, suffix: str) -> None:
        import psycopg

        params: Any = connections[using].get_connection_params()
        wanted = {name: params[name] for name in ("dbname", "host", "port", "user") if name in params}
        self._session = psycopg.connect(**wanted, password=params.get("password"), autocommit=True)
        self._session.execute(f"LISTEN {channel}")

    def rings(self) -> int:
        self._session.execute("SELECT 1")  # a round trip: what was committed before it has arrived
        return len(list(self._session.notifies(timeout=0)))

    def close(self) -> None:
        self._session.close()


@contextmanager
def ear(using: str = "default", channel: str = tables.CHANNEL, suffix: str = bells.SUFFIX) -> Iterator[Ear]:
    """For SQLite and PostgreSQL, which has channels."""
    kind = {"sqlite": Bell, "postgresql": Session}[connections[using].vendor]
    with closing(kind(using, channel, suffix)) as opened:
        yield opened
