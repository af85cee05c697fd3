"""What SQLite says about honker's tables in a file, and what is in them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

OF_HONKER = "LIKE '\\_honker%' ESCAPE '\\'"
PRAGMAS = ("table_info", "foreign_key_list")
CLAIMED_AT = (12, "claimed_at", "INTEGER", 0, None, 0)
"""Our one column more, as table_info tells it: the last, nullable, without a default."""


def structure(path: Path) -> dict[str, Any]:
    """Types, columns, defaults, keys, indexes with their columns and conditions, and the SQL of each object
    whose name begins like honker's, white space aside."""
    with closing(sqlite3.connect(path)) as connection:
        objects = connection.execute(
            f"SELECT name, type, sql FROM sqlite_schema WHERE tbl_name {OF_HONKER}"
        ).fetchall()
        found: dict[str, Any] = {name: {"type": kind, "sql": squeezed(sql)} for name, kind, sql in objects}
        for name, details in found.items():
            if details["type"] == "index":
                details["columns"] = connection.execute(f"PRAGMA index_xinfo({name})").fetchall()
                continue
            for pragma in PRAGMAS:
                details[pragma] = connection.execute(f"PRAGMA {pragma}({name})").fetchall()
            indexes = connection.execute(f"PRAGMA index_list({name})").fetchall()
            details["indexes"] = sorted(index[1:] for index in indexes)  # but not the order of creation
            details["storage"] = connection.execute(
                "SELECT type, ncol, wr, strict FROM pragma_table_list WHERE name = ?", [name]
            ).fetchall()
        return found


def with_claimed_at(found: dict[str, Any]) -> dict[str, Any]:
    """The structure of a file of honker's, as it is once the later honker's column has been added."""
    live = found["_honker_live"]
    kind, columns, *rest = live["storage"][0]
    changed = {
        "sql": live["sql"].removesuffix(")") + ",claimed_atINTEGER)",
        "table_info": [*live["table_info"], CLAIMED_AT],
        "storage": [(kind, columns + 1, *rest)],
    }
    return found | {"_honker_live": live | changed}


def squeezed(sql: str | None) -> str | None:
    return None if sql is None else re.sub(r"\s+", "", sql)


def names(path: Path) -> set[str]:
    """Every table, index, view and trigger of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def contents(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row of honker's tables and of its view, and the last ids that were given."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute(
            f"SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name {OF_HONKER}"
        )
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables}
        found["sqlite_sequence"] = connection.execute(
            f"SELECT * FROM sqlite_sequence WHERE name {OF_HONKER}"
        ).fetchall()
        return {name: [dict(row) for row in rows] for name, rows in found.items()}
