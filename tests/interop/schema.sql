-- The schema of a fresh file of honker 0.5.0.

CREATE TABLE _honker_notifications (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (unixepoch())
);
CREATE INDEX _honker_notifications_recent
    ON _honker_notifications(channel, id);

CREATE TABLE _honker_live (
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
    expires_at INTEGER
);
CREATE INDEX _honker_live_claim
    ON _honker_live(queue, priority DESC, run_at, id)
    WHERE state IN ('pending', 'processing');
CREATE INDEX _honker_live_pending_deadline
    ON _honker_live(queue, run_at)
    WHERE state = 'pending';
CREATE INDEX _honker_live_processing_deadline
    ON _honker_live(queue, claim_expires_at)
    WHERE state = 'processing';

CREATE TABLE _honker_dead (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    payload TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    created_at INTEGER NOT NULL DEFAULT (unixepoch()),
    died_at INTEGER NOT NULL DEFAULT (unixepoch())
);

CREATE TABLE _honker_locks (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    expires_at INTEGER NOT NULL
);

CREATE TABLE _honker_rate_limits (
    name TEXT NOT NULL,
    window_start INTEGER NOT NULL,
    count INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, window_start)
);

CREATE TABLE _honker_scheduler_tasks (
    name TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    cron_expr TEXT NOT NULL,
    payload TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    expires_s INTEGER,
    next_fire_at INTEGER NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1,
    max_attempts INTEGER NOT NULL DEFAULT 3
);

CREATE TABLE _honker_results (
    job_id INTEGER PRIMARY KEY,
    value TEXT,
    created_at INTEGER NOT NULL DEFAULT (unixepoch()),
    expires_at INTEGER
);

CREATE TABLE _honker_stream (
    offset INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    key TEXT,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (unixepoch())
);
CREATE INDEX _honker_stream_topic
    ON _honker_stream(topic, offset);

CREATE TABLE _honker_stream_consumers (
    name TEXT NOT NULL,
    topic TEXT NOT NULL,
    offset INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, topic)
);
CREATE VIEW _honker_jobs AS
    SELECT id, queue, payload, state, priority, run_at,
    worker_id, claim_expires_at,
    attempts, max_attempts, NULL AS last_error, created_at
    FROM _honker_live
    UNION ALL
    SELECT id, queue, payload, 'dead' AS state, priority,
    run_at, NULL, NULL,
    attempts, max_attempts, last_error, created_at
    FROM _honker_dead;
