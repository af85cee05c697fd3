"""A clean Django around each task: what one leaves behind, the next must not find."""

from __future__ import annotations

import math
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import Any

from django.core.cache import caches
from django.db import Error, connections

from alkstore_django.logs import get_logger

from .environment import ENVIRONMENT
from .lines import has_another_file

logger = get_logger("alkstore_django.worker")


def check_kept_connections() -> None:
    """Look at kept connections before a task's first query, for the rest of this process's life.

    The setting costs a web request a round trip; between two tasks more time may lie, and servers and
    firewalls cut what is idle. Django's pool asks for it too.
    """
    for alias in connections:
        connections.settings[alias]["CONN_HEALTH_CHECKS"] = True


FRESH = 1.0
"""Seconds after a task for which the next one in its thread finds connections as they were left."""


class CleanSurroundings(AbstractContextManager[None]):
    """Before a task: no stale connection. After it: no open transaction, and the environment as before.

    What Django and others keep in context variables, such as language, time zone and decimal context,
    is gone with the context that each task has of its own. Only the caches stay with the thread.
    """

    def __init__(self, task: str) -> None:
        self._task = task

    def __enter__(self) -> None:
        for alias, cache in getattr(_this_thread, "caches", {}).items():
            caches[alias] = cache
        if time.monotonic() > getattr(_this_thread, "tidied", -math.inf) + FRESH:
            _refresh_connections()
        ENVIRONMENT.begin(self._task)

    def __exit__(self, *exc_info: object) -> None:
        ENVIRONMENT.end()
        _this_thread.caches = _tidy_caches()
        _tidy_connections()
        _this_thread.tidied = time.monotonic()


def close_connections() -> None:
    """At the end of a thread, or of its use by one task."""
    _tidy_connections()
    for connection in connections.all(initialized_only=True):
        with suppress(Error):  # broken, and nobody needs it any more
            connection.close()


_this_thread = threading.local()


def _tidy_caches() -> dict[str, Any]:
    """Close them as Django does after a request; those that were used, by their alias."""
    made = caches._connections  # type: ignore[attr-defined] # what Django itself asks
    used = {alias: getattr(made, alias) for alias in caches.settings if hasattr(made, alias)}
    for alias, cache in used.items():
        try:
            cache.close()
        except Exception as error:  # whatever the client of a cache raises
            logger.info("The cache %r could not be closed: %s", alias, error)
    return used


def _refresh_connections() -> None:
    for connection in connections.all(initialized_only=True):
        connection.queries_log.clear()
        with suppress(Error):  # one that cannot even be closed; Django has let go of it
            connection.close_if_unusable_or_obsolete()
            if has_another_file(connection):
                connection.close()


def _tidy_connections() -> None:
    for connection in connections.all(initialized_only=True):
        connection.queries_log.clear()
        try:
            if _is_in_transaction(connection):
                logger.warning("A task left a transaction open on %r: rolled back.", connection.alias)
                _end_transaction(connection)
            connection.close_if_unusable_or_obsolete()
            if connection.connection is not None:
                # Ends what a BEGIN by hand began, and fails where somebody has closed the driver's
                # connection; SQLite's is_usable() does not look.
                connection.rollback()
        except Error as error:
            logger.info("The connection %r was broken: %s", connection.alias, error)
            with suppress(Error):
                connection.close()


def _is_in_transaction(connection: Any) -> bool:
    if connection.in_atomic_block:
        return True  # also without a connection: one that came from a pool is gone once it is closed
    return bool(
        connection.connection is not None
        and connection.settings_dict["AUTOCOMMIT"]
        and not connection.get_autocommit()
    )


def _end_transaction(connection: Any) -> None:
    """Roll back, and let go of the connection: nobody knows what else was done to it."""
    connection.in_atomic_block = False
    connection.savepoint_ids = []
    connection.atomic_blocks = []
    connection.needs_rollback = False
    connection.closed_in_transaction = False
    connection.run_on_commit = []
    connection.commit_on_exit = True
    try:
        connection.rollback()
    finally:
        connection.close()
