"""What honker makes of a file: its schema, and rows of every table (honker-spec A.1 and A.2)."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

SCHEMA = (Path(__file__).parents[1] / "interop" / "schema.sql").read_text()
OLDER = re.sub(r",\s*enabled INTEGER[^,]*,\s*max_attempts INTEGER NOT NULL DEFAULT 3(?=\s*\);)", "", SCHEMA)
"""Before schedules could be paused, and had a budget."""

ROWS = r"""
INSERT INTO _honker_live (id, queue, payload, state, priority, run_at, worker_id, claim_expires_at, attempts,
    max_attempts, created_at, expires_at) VALUES
    (2, 'emails', '{"p": 2}', 'pending', 5, 4102444800, NULL, NULL, 0, 2, 1795964762, 4102448400),
    (6, 'emails', '{"__honker_task__": {"task": "app.send", "args": [1], "kwargs": {"y": 2}}}', 'pending', 0,
     1795964762, NULL, NULL, 0, 4, 1795964762, NULL),
    (7, 'emails', '{"wait": 1}', 'processing', 9, 1795964762, 'w9', 4102444800, 1, 2, 1795964762, NULL);
INSERT INTO _honker_dead (id, queue, payload, attempts, max_attempts, last_error) VALUES
    (1, 'emails', '{"to": "\u00e9\"x", "n": 1}', 2, 2, 'boom2'),
    (30, 'emails', '{"d": 1}', 0, 2, 'expired');
INSERT INTO _honker_locks VALUES ('job-lock', 'me', 1795964822);
INSERT INTO _honker_rate_limits VALUES ('api', 1795964760, 2);
INSERT INTO _honker_scheduler_tasks (name, queue, cron_expr, payload, next_fire_at)
    VALUES ('five', 'emails', '@every 5s', '{"k": 1}', 1795964767);
INSERT INTO _honker_results (job_id, value, expires_at)
    VALUES (5, '{"r": [1, 2]}', NULL), (999, 'null', 4102444800);
INSERT INTO _honker_stream (topic, payload) VALUES ('orders', '{"id": 1}');
INSERT INTO _honker_stream_consumers VALUES ('c1', 'orders', 1);
INSERT INTO _honker_notifications (channel, payload) VALUES ('orders', '"str"');
"""


def make(path: Path, *scripts: str) -> None:
    """Run SQL on a file as a program without Django."""
    with closing(sqlite3.connect(path)) as connection:
        for script in scripts:
            connection.executescript(script)


def schema(path: Path | str) -> dict[str, str]:
    """The text of every table, index and view of honker by name, whatever its white space."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE tbl_name LIKE '\\_honker%' ESCAPE '\\'"
        )
        return {name: re.sub(r"\s+", "", sql or "") for name, sql in rows}


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of honker's tables, without the column that honker 0.5 does not know."""
    with closing(sqlite3.connect(path)) as connection:
        found = {}
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if table.startswith("_honker"):
                names = [
                    row[1]
                    for row in connection.execute(f"PRAGMA table_info({table})")
                    if row[1] != "claimed_at"
                ]
                found[table] = connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
        return found
