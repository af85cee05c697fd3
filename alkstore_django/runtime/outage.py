"""What to do while the database is away: wait longer and longer, and say so once."""

from __future__ import annotations

import random
import time

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError

from alkstore_django.exceptions import TablesMissing
from alkstore_django.health import lacks_something
from alkstore_django.logs import get_logger

logger = get_logger("alkstore_django.worker")

TROUBLE = (OperationalError, InterfaceError, InternalError)
"""Errors that may go away by themselves: server down, connection cut, file locked, disk full; the last
is what PostgreSQL says while a failover has left us with a read-only server."""


def may_pass(error: BaseException, using: str, *, had_tables: bool) -> bool:
    """Whether the error may go away by itself. A database that had our tables is to have them again: it is
    being restored. A second look would not tell: by then they may be back."""
    if isinstance(error, TROUBLE):
        return True
    if not had_tables:
        return False
    return isinstance(error, TablesMissing) or (
        isinstance(error, DatabaseError) and lacks_something(using, error)
    )


class Outage:
    """The present trouble with the database, if any. Waits from 0.1 s up to ``cap`` seconds, +-20 %."""

    def __init__(self, cap: float = 5.0) -> None:
        self.cap = cap
        self._since: float | None = None
        self._wait = 0.0

    @property
    def is_on(self) -> bool:
        return self._since is not None

    def wait_after(self, error: Exception) -> float:
        """Note the error; seconds to wait before the next try. Only the first one of an outage is logged."""
        if self._since is None:
            self._since, self._wait = time.monotonic(), 0.05
            self._say_begun(error)
        else:
            logger.debug("The database is still in trouble: %s", error)
        self._wait = min(self._wait * 2, self.cap)
        return self._wait * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, no secret

    def over(self) -> None:
        """The database answered."""
        if self._since is not None:
            self._say_over(time.monotonic() - self._since)
        self._since = None

    def _say_begun(self, error: Exception) -> None:
        logger.warning("The database is in trouble, trying again until it is not: %s", error)

    def _say_over(self, seconds: float) -> None:
        logger.info("The database is back after %.1f s.", seconds)
