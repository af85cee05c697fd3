"""Tell the workers of a database, once the transaction is committed, that a job was put in."""

from __future__ import annotations

import weakref
from typing import Any

from django.db import connections, transaction

from alkstore_django import bells
from alkstore_django.conf import settings
from alkstore_django.sql import get_dialect

_PENDING = "_alkstore_ring"
"""Attribute of a connection: a weak reference to the callback that will ring for its transaction."""


def bell_directories(alias: str) -> tuple[str, ...]:
    """Where the bells of a database can be; nowhere if it has none."""
    connection: Any = connections[alias]
    if not (settings.DOORBELL and bells.ARE_POSSIBLE and get_dialect(connection).has_doorbells):
        return ()
    if connection.is_in_memory_db():
        return ()
    return bells.directories(bells.file_of(connection.settings_dict["NAME"]), settings.SOCKET_DIR)


def ring_after_commit(alias: str) -> None:
    """Ring the doorbells of the database, once for each transaction; at once outside of one.

    The callback that waits is kept alive by Django's list alone: it is gone when the transaction has
    ended, and when the savepoint in which it was registered was rolled back. While it is there it rings
    for everything that follows, too: savepoints that it depends on were either released, or are ones on
    which what follows depends as well.
    """
    connection: Any = connections[alias]
    directories = bell_directories(alias)
    if not directories or _is_test_case(connection):
        return
    if not connection.in_atomic_block:
        # With autocommit off, nobody will say when there was a commit.
        if connection.get_autocommit():
            bells.ring(directories)
        return
    pending = getattr(connection, _PENDING, None)
    if pending is not None and pending() is not None:
        return

    def ring() -> None:
        bells.ring(directories)

    transaction.on_commit(ring, using=alias, robust=True)
    setattr(connection, _PENDING, weakref.ref(ring))


def _is_test_case(connection: Any) -> bool:
    """Whether a ``TestCase`` will roll everything back: its tests see no callback of ours."""
    return bool(connection.atomic_blocks) and getattr(connection.atomic_blocks[0], "_from_testcase", False)
