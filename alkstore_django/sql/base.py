"""The dialect: the portable SQL of the queue; a vendor's subclass overrides what it does better.

Statements are whole and named. Nothing here executes anything: the managers do.
"""

from __future__ import annotations

from typing import Any

from .burying import Burying
from .claiming import Claiming
from .holding import Holding
from .limiting import Limiting
from .locking import Locking
from .looking import Looking
from .notifying import Notifying
from .operating import Operating
from .relaying import Relaying
from .retaining import Retaining
from .reviving import Reviving
from .scheduling import Scheduling
from .telling import Telling
from .turning import Turning


class Dialect(
    Claiming,
    Holding,
    Turning,
    Burying,
    Reviving,
    Operating,
    Telling,
    Looking,
    Locking,
    Limiting,
    Scheduling,
    Notifying,
    Retaining,
    Relaying,
):
    """A correct answer for any database with ``FOR UPDATE SKIP LOCKED``; subclasses do better."""

    connect_options: dict[str, Any] = {}
    """For ``OPTIONS`` in ``DATABASES``, where the project does not say it: seconds for a connection."""

    mirror_tables: tuple[str, ...] = ()
    """DDL of the mirror for databases that adopt tables; others create them from the models."""

    mirror_columns: tuple[tuple[str, str, str], ...] = ()
    """(table, column, type) of columns that an older honker did not make."""

    restored_indexes: tuple[str, ...] = ()
    """CREATE INDEX IF NOT EXISTS for what the statements name; without them they would fail."""

    indexes: tuple[str, ...] = ()
    """CREATE INDEX for the mirror, under names of our own."""
