"""The vendor seam: SQL text and flags for each database. Nothing in this folder executes anything."""

from __future__ import annotations

from typing import Any

from django.db import NotSupportedError

from .base import Dialect
from .mysql import MariaDBDialect, MySQLDialect
from .postgresql import PostgreSQLDialect
from .sqlite import SQLiteDialect

_DIALECTS: dict[str, Dialect] = {
    "sqlite": SQLiteDialect(),
    "postgresql": PostgreSQLDialect(),
    "mysql": MySQLDialect(),
    "mariadb": MariaDBDialect(),
}


def get_dialect(connection: Any) -> Dialect:
    """The dialect of a connection. Raises ``NotSupportedError`` for a database without one.

    Asks a MySQL connection for its brand, which costs one connection and query per process.
    """
    vendor = connection.vendor
    if vendor == "mysql" and connection.mysql_is_mariadb:
        vendor = "mariadb"
    if vendor not in _DIALECTS:
        raise NotSupportedError(
            f"alkstore_django runs on SQLite, PostgreSQL, MariaDB and MySQL, not {vendor}."
        )
    return _DIALECTS[vendor]


def connect_options(connection: Any) -> dict[str, Any]:
    """What its driver needs not to wait for ever for a server that does not answer. Asks nobody."""
    dialect = _DIALECTS.get(connection.vendor)
    return dialect.connect_options if dialect else {}
