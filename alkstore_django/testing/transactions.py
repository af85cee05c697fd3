"""Let code that runs inside of a test's transaction find what it would find in a worker.

A ``TestCase`` holds a transaction open around everything. To a task it is as if that were not there: what
it commits is committed, as far as the test sees, and its ``on_commit`` callbacks run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from logging import getLogger
from typing import Any

from django.db import DatabaseError, connections

logger = getLogger(__name__)


@contextmanager
def intact() -> Iterator[None]:
    """However the code ends, the test's transactions can be used after it.

    A failed statement that nothing has rolled back, after which PostgreSQL takes no other, is undone here,
    with all that the code has done in that database.
    """
    before = [(each, each.savepoint(), len(each.run_on_commit)) for each in _in_transaction()]
    try:
        yield
    finally:
        for connection, savepoint, callbacks in reversed(before):
            _release(connection, savepoint, callbacks)


def _release(connection: Any, savepoint: Any, callbacks: int) -> None:
    try:
        connection.savepoint_commit(savepoint)
    except DatabaseError:
        connection.needs_rollback = False
        connection.savepoint_rollback(savepoint)
        connection.run_on_commit = connection.run_on_commit[:callbacks]


@contextmanager
def committed(using: str | None = None) -> Iterator[None]:
    """At the end, run the ``on_commit`` callbacks that the code has left (in that database)."""
    before = [(each, len(each.run_on_commit)) for each in _in_transaction() if using in (None, each.alias)]
    try:
        yield
    finally:
        call_back(before)


def call_back(before: Sequence[tuple[Any, int]]) -> None:
    """Run the callbacks of connections after the first so many; theirs, too. Raises what they raise."""
    for connection, count in before:
        while len(connection.run_on_commit) > count:
            _, callback, is_robust = connection.run_on_commit.pop(count)
            try:
                callback()
            except Exception:
                if not is_robust:
                    raise
                logger.exception("An on_commit callback of a task failed.")


def _in_transaction() -> list[Any]:
    return [each for each in connections.all(initialized_only=True) if each.in_atomic_block]
