"""Names of the tables: honker's, which other programs share, and our own beside them."""

from __future__ import annotations

LIVE = "_honker_live"
DEAD = "_honker_dead"
LOCKS = "_honker_locks"
RATE_LIMITS = "_honker_rate_limits"
SCHEDULES = "_honker_scheduler_tasks"
RESULTS = "_honker_results"
STREAM = "_honker_stream"
CONSUMERS = "_honker_stream_consumers"
NOTIFICATIONS = "_honker_notifications"
JOBS_VIEW = "_honker_jobs"

ATTEMPTS = "alkstore_attempts"
RUNS = "alkstore_runs"
WORKERS = "alkstore_workers"
QUEUE_CONTROLS = "alkstore_queue_controls"
SCHEDULE_OPTIONS = "alkstore_schedule_options"
SCHEDULED_JOBS = "alkstore_scheduled_jobs"
UNIQUE_KEYS = "alkstore_unique_keys"
METADATA = "alkstore_metadata"
OUTBOX_KEYS = "alkstore_outbox_keys"
OUTBOX_EVENTS = "alkstore_outbox_events"
INBOX = "alkstore_inbox"
LOCK_TOKENS = "alkstore_lock_tokens"
RATE_PERIODS = "alkstore_rate_periods"

MIRROR = (LIVE, DEAD, LOCKS, RATE_LIMITS, SCHEDULES, RESULTS, STREAM, CONSUMERS, NOTIFICATIONS)

CHANNEL = "alkstore_jobs"
"""PostgreSQL's channel on which workers are told that a job was put in."""

ENDS = "alkstore_ends"
"""PostgreSQL's channel on which those who wait for jobs are told of ends: ids, with spaces between."""

WAITERS = int.from_bytes(b"alk ends")
"""PostgreSQL's advisory lock that those share who listen there: where nobody does, nobody is told."""

HEARD = "alkstore_notifications"
"""PostgreSQL's channel on which listeners are told of notifications: the names of their own channels."""

TASK_PREFIX = '{"__honker_task__"'
"""How the payload of every task begins, in Python's and in compact JSON (honker-spec 3.2)."""
