"""PostgreSQL tells those who listen; the clerk's own connection does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import Error, connections

from alkstore_django import looks

from .base import Wake


class Listening(Wake):
    """``LISTEN``, again on every new connection. A program that does not say ``NOTIFY`` is found after
    ``interval``."""

    interval = 2.0

    def __init__(self, using: str) -> None:
        self._using = using
        self._session: Any = None
        self._has_rung = False

    def arm(self) -> None:
        if self._session is None or connections[self._using].connection is not self._session:
            self._listen()
        self._receive()
        self._has_rung = False

    def filenos(self) -> tuple[int, ...]:
        return () if self._session is None else (self._session.fileno(),)

    def heard(self) -> bool:
        if self._session is not None:
            self._receive()
        return self._has_rung

    def let_go(self) -> None:
        """Closed here, a session does not go back to a pool: the next to have it would hear us."""
        if self._session is not None:
            self._session.remove_notify_handler(self._ring)
            self._session.close()
            self._session = None

    def close(self) -> None:
        if self._session is not None and connections[self._using].connection is self._session:
            self._session.remove_notify_handler(self._ring)
            with suppress(Error):  # it goes away, and with it what it heard
                looks.listen(self._using, False)
        self._session = None

    def _listen(self) -> None:
        looks.listen(self._using, True)
        self._session = connections[self._using].connection
        # The driver gives away what comes in between the rows of some answer, if somebody wants it.
        self._session.add_notify_handler(self._ring)

    def _ring(self, notification: Any) -> None:
        self._hear(notification.payload.encode())

    def _hear(self, payload: bytes) -> None:
        self._has_rung = True

    def _receive(self) -> None:
        """Take in what has arrived, without waiting. Raises what Django raises for a lost connection."""
        with connections[self._using].wrap_database_errors:
            session = self._session.pgconn
            session.consume_input()
            while (notification := session.notifies()) is not None:
                self._hear(notification.extra)
