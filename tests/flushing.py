"""Empty the tables between tests: on PostgreSQL TRUNCATE takes a hundred times as long as DELETE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connections
from django.db.backends.postgresql.operations import DatabaseOperations

LARGE = 1_000_000
"""Bytes: what is larger has held so many rows that leaving them dead would slow down what comes next."""


def delete_on_postgresql(patch: pytest.MonkeyPatch) -> None:
    truncate = DatabaseOperations.sql_flush

    def sql_flush(self: DatabaseOperations, style: Any, tables: Sequence[str], **options: bool) -> list[str]:
        if any(options.values()) or _are_large(self.connection.alias, tables):
            return truncate(self, style, tables, **options)
        return [f"DELETE FROM {self.quote_name(table)}" for table in tables]

    patch.setattr(DatabaseOperations, "sql_flush", sql_flush)


def _are_large(using: str, tables: Sequence[str]) -> bool:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_class WHERE relname = ANY(%s) AND pg_relation_size(oid) > %s LIMIT 1",
            [[*tables], LARGE],
        )
        return cursor.fetchone() is not None
