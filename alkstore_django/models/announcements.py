"""Tell the workers of a database, once the transaction is committed, that a job was put in; and those who
listen that there was a notification."""

from __future__ import annotations

import weakref
from typing import Any

from django.db import connections, transaction

from alkstore_django import bells
from alkstore_django.conf import settings
from alkstore_django.sql import get_dialect

_PENDING = {bells.SUFFIX: "_alkstore_ring", bells.EAR: "_alkstore_ring_ears"}
"""Attributes of a connection: weak references to the callbacks that will ring for its transaction."""


def bell_directories(alias: str) -> tuple[str, ...]:
    """Where the bells of a database can be; nowhere if it has none."""
    return _directories(connections[alias])


def _directories(connection: Any) -> tuple[str, ...]:
    if not (bells.ARE_POSSIBLE and get_dialect(connection).has_doorbells and settings.DOORBELL):
        return ()
    if connection.is_in_memory_db():
        return ()
    return bells.directories(bells.file_of(connection.settings_dict["NAME"]), settings.SOCKET_DIR)


def ring_after_commit(alias: str, suffix: str = bells.SUFFIX) -> None:
    """Ring the doorbells of the database, once for each transaction; at once outside of one. Of listeners
    if ``suffix`` says so.

    The callback that waits is kept alive by Django's list alone: it is gone when the transaction has
    ended, and when the savepoint in which it was registered was rolled back. While it is there it rings
    for everything that follows, too: savepoints that it depends on were either released, or are ones on
    which what follows depends as well.
    """
    connection: Any = connections[alias]
    directories = _directories(connection)
    if not directories or _is_test_case(connection):
        return
    if not connection.in_atomic_block:
        # With autocommit off, nobody will say when there was a commit.
        if connection.get_autocommit():
            bells.ring(directories, suffix)
        return
    pending = getattr(connection, _PENDING[suffix], None)
    if pending is not None and pending() is not None:
        return

    def ring() -> None:
        bells.ring(directories, suffix)

    transaction.on_commit(ring, using=alias, robust=True)
    setattr(connection, _PENDING[suffix], weakref.ref(ring))


def _is_test_case(connection: Any) -> bool:
    """Whether a ``TestCase`` will roll everything back: its tests see no callback of ours."""
    return bool(connection.atomic_blocks) and getattr(connection.atomic_blocks[0], "_from_testcase", False)
