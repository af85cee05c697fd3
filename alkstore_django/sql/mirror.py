"""honker's tables on SQLite: the same columns, types, database defaults and index names (honker-spec 1.1).

Everything is IF NOT EXISTS, so a file that honker made first is adopted, and honker bootstraps
cleanly on a file that we made first. Nothing here may ever change but by adding a column.
"""

from __future__ import annotations

from .tables import (
    CONSUMERS,
    DEAD,
    JOBS_VIEW,
    LIVE,
    LOCKS,
    NOTIFICATIONS,
    RATE_LIMITS,
    RESULTS,
    SCHEDULES,
    STREAM,
)

TABLES = {
    NOTIFICATIONS: """
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        channel TEXT NOT NULL,
        payload TEXT NOT NULL,
        created_at INTEGER NOT NULL DEFAULT (unixepoch())""",
    LIVE: """
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        queue TEXT NOT NULL,
        payload TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'pending',
        priority INTEGER NOT NULL DEFAULT 0,
        run_at INTEGER NOT NULL DEFAULT (unixepoch()),
        worker_id TEXT,
        claim_expires_at INTEGER,
        attempts INTEGER NOT NULL DEFAULT 0,
        max_attempts INTEGER NOT NULL DEFAULT 3,
        created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        expires_at INTEGER,
        claimed_at INTEGER""",
    DEAD: """
        id INTEGER PRIMARY KEY,
        queue TEXT NOT NULL,
        payload TEXT NOT NULL,
        priority INTEGER NOT NULL DEFAULT 0,
        run_at INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0,
        max_attempts INTEGER NOT NULL DEFAULT 0,
        last_error TEXT,
        created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        died_at INTEGER NOT NULL DEFAULT (unixepoch())""",
    LOCKS: """
        name TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        expires_at INTEGER NOT NULL""",
    RATE_LIMITS: """
        name TEXT NOT NULL,
        window_start INTEGER NOT NULL,
        count INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (name, window_start)""",
    SCHEDULES: """
        name TEXT PRIMARY KEY,
        queue TEXT NOT NULL,
        cron_expr TEXT NOT NULL,
        payload TEXT NOT NULL,
        priority INTEGER NOT NULL DEFAULT 0,
        expires_s INTEGER,
        next_fire_at INTEGER NOT NULL,
        enabled INTEGER NOT NULL DEFAULT 1,
        max_attempts INTEGER NOT NULL DEFAULT 3""",
    RESULTS: """
        job_id INTEGER PRIMARY KEY,
        value TEXT,
        created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        expires_at INTEGER""",
    STREAM: """
        offset INTEGER PRIMARY KEY AUTOINCREMENT,
        topic TEXT NOT NULL,
        key TEXT,
        payload TEXT NOT NULL,
        created_at INTEGER NOT NULL DEFAULT (unixepoch())""",
    CONSUMERS: """
        name TEXT NOT NULL,
        topic TEXT NOT NULL,
        offset INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (name, topic)""",
}

INDEXES = (
    f"_honker_notifications_recent ON {NOTIFICATIONS}(channel, id)",
    f"_honker_live_claim ON {LIVE}(queue, priority DESC, run_at, id) "
    "WHERE state IN ('pending', 'processing')",
    f"_honker_live_pending_deadline ON {LIVE}(queue, run_at) WHERE state = 'pending'",
    f"_honker_live_processing_deadline ON {LIVE}(queue, claim_expires_at) WHERE state = 'processing'",
    f"_honker_stream_topic ON {STREAM}(topic, offset)",
)

_BOTH = "id, queue, payload, {state}, priority, run_at, {claim}, attempts, max_attempts, {error}, created_at"

VIEW = (
    f"CREATE VIEW IF NOT EXISTS {JOBS_VIEW} AS SELECT "
    + _BOTH.format(state="state", claim="worker_id, claim_expires_at", error="NULL AS last_error")
    + f" FROM {LIVE} UNION ALL SELECT "
    + _BOTH.format(state="'dead' AS state", claim="NULL, NULL", error="last_error")
    + f" FROM {DEAD}"
)

INDEX_STATEMENTS = tuple(f"CREATE INDEX IF NOT EXISTS {index}" for index in INDEXES)

STATEMENTS = (
    *(f"CREATE TABLE IF NOT EXISTS {table} ({columns}\n      )" for table, columns in TABLES.items()),
    *INDEX_STATEMENTS,
    VIEW,
)

LATER_COLUMNS = (
    (SCHEDULES, "enabled", "INTEGER NOT NULL DEFAULT 1"),
    (SCHEDULES, "max_attempts", "INTEGER NOT NULL DEFAULT 3"),
    (LIVE, "claimed_at", "INTEGER"),
)
