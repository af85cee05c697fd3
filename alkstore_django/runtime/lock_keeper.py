"""Keepers: threads that renew named locks, for as long as they are held."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import Empty, SimpleQueue

from django.db import Error, connections, transaction

from alkstore_django.held_locks import HeldLock
from alkstore_django.logs import get_logger

logger = get_logger("alkstore_django.locks")

PARTING = 1.0
"""Seconds to wait for the end of a keeper: what comes next may want its connection gone."""

AGAIN = 1.0
"""Seconds after which a renewal is tried again that met an error of the database."""


def keep(held: HeldLock) -> None:
    """Renew a lock until it is released. What was taken in a transaction nobody can take, nor renew from
    elsewhere, before the commit."""
    connection = connections[held.using]
    if not connection.in_atomic_block:
        Keeper(held).start()
        return

    def start() -> None:
        if not (held.is_released or connection.in_atomic_block):  # a TestCase can run it before its end
            Keeper(held).start()

    transaction.on_commit(start, using=held.using)


class Keeper:
    """One lock's. It has a connection of its own once the first renewal is due, closed at its end."""

    def __init__(self, held: HeldLock) -> None:
        self._held = held
        self._has_failed = False
        self._mail: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"alkstore-lock-{held.name}", daemon=True)

    def start(self) -> None:
        self._held.on_release(self._stop)
        self._thread.start()

    def _stop(self) -> None:
        self._mail.put(None)
        if self._thread.is_alive():
            self._thread.join(PARTING)

    def _run(self) -> None:
        held = self._held
        try:
            while not self._is_stopped_within(self._pause()):
                if not self._renewed():
                    break
        finally:
            self._close()
            if not held.is_released:
                held.give_up()
                logger.warning("Lock %r of %r is lost.", held.name, held.owner)

    def _renewed(self) -> bool:
        """Whether it goes on: after an error of the database there are more tries while it has time."""
        held = self._held
        if held.is_released:  # in a transaction that may be rolled back, or whose commit will end this thread
            return held.seconds_left > 0
        try:
            self._has_failed = False
            return held.renew()
        except Error as error:
            logger.info("Lock %r could not be renewed: %s", held.name, error)
            self._has_failed = True
            self._close()
            return held.seconds_left > 0

    def _pause(self) -> float:
        third = self._held.seconds_left / 3
        return min(AGAIN if self._has_failed else threading.TIMEOUT_MAX, third)

    def _is_stopped_within(self, seconds: float) -> bool:
        try:
            self._mail.get(timeout=seconds)
        except Empty:
            return False
        return True

    def _close(self) -> None:
        with suppress(Error):
            connections[self._held.using].close()
