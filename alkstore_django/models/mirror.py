"""The migration operation that makes honker's tables, or adopts those that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation

from alkstore_django.sql import get_dialect, tables


class MirrorTables(Operation):
    """Creates the models of the mirror.

    Where the dialect adopts tables (SQLite) its own DDL runs, each statement IF NOT EXISTS, and then
    the columns that an older honker did not make; elsewhere the models are created as usual, with the
    dialect's indexes. Reversing drops the tables, on SQLite only if no row of any program is in them.
    """

    reduces_to_sql = False
    reversible = True

    def __init__(self, models: Sequence[CreateModel]) -> None:
        self.models = models

    def deconstruct(self) -> tuple[str, Sequence[Any], dict[str, Any]]:
        return type(self).__name__, [], {"models": self.models}

    def state_forwards(self, app_label: str, state: Any) -> None:
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if not self._allowed(app_label, schema_editor, to_state):
            return
        dialect = get_dialect(schema_editor.connection)
        if dialect.adopts_tables:
            for statement in dialect.mirror_tables:
                schema_editor.execute(statement, params=None)
            self._add_missing_columns(schema_editor)
        else:
            for model in self.models:
                model.database_forwards(app_label, schema_editor, from_state, to_state)
            schema_editor.deferred_sql += dialect.indexes

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if not self._allowed(app_label, schema_editor, from_state):
            return
        if not get_dialect(schema_editor.connection).adopts_tables:
            for model in reversed(self.models):
                model.database_backwards(app_label, schema_editor, from_state, to_state)
        elif not self._holds_rows(schema_editor):
            schema_editor.execute(f"DROP VIEW IF EXISTS {tables.JOBS_VIEW}", params=None)
            for table in tables.MIRROR:
                schema_editor.execute(f"DROP TABLE IF EXISTS {table}", params=None)

    def describe(self) -> str:
        return "Create or adopt the tables that are shared with honker"

    @property
    def migration_name_fragment(self) -> str:
        return "mirror"

    def _allowed(self, app_label: str, schema_editor: Any, state: Any) -> bool:
        model = state.apps.get_model(app_label, self.models[0].name)
        return bool(self.allow_migrate_model(schema_editor.connection.alias, model))

    def _add_missing_columns(self, schema_editor: Any) -> None:
        connection = schema_editor.connection
        with connection.cursor() as cursor:
            for table, column, definition in get_dialect(connection).mirror_columns:
                present = {
                    info.name for info in connection.introspection.get_table_description(cursor, table)
                }
                if column not in present:
                    cursor.execute(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")

    @staticmethod
    def _holds_rows(schema_editor: Any) -> bool:
        with schema_editor.connection.cursor() as cursor:
            for table in tables.MIRROR:
                cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608 - our own table names
                if cursor.fetchone():
                    return True
        return False
