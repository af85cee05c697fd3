"""The tables: honker's as they are, and our own beside them. The operations above are the API."""

from __future__ import annotations

from .arrival import Arrival
from .attempt import Attempt
from .claim import Claim
from .dead import DeadJob, DeadJobManager
from .inbox import InboxManager, InboxMessage
from .job import Job, JobManager, alias
from .lock import Hold, Lock, LockManager, LockToken
from .metadata import Metadata, MetadataManager
from .notification import PREPARED, Message, Notification, NotificationManager
from .outbox import Blocked, Lined, OutboxEvent, OutboxKey, OutboxManager, Place
from .pruning import PruningManager
from .rate_limit import Counted, RateLimit, RateLimitManager, RatePeriod
from .result import Result, ResultManager
from .reviving import FoundLetter, Letter, Wanted
from .run import End, Run
from .schedule import (
    FOREIGN,
    ScheduledJob,
    ScheduledTask,
    ScheduleManager,
    ScheduleOptions,
    ScheduleRow,
)
from .stream import StreamConsumer, StreamEvent
from .turn import Entry
from .unique_key import Seen, Take, UniqueKey
from .worker import QueueControl, QueueControlManager, WorkerProcess, WorkerProcessManager

__all__ = [
    "Arrival",
    "Attempt",
    "Blocked",
    "Claim",
    "Counted",
    "DeadJob",
    "DeadJobManager",
    "End",
    "Entry",
    "FOREIGN",
    "FoundLetter",
    "Hold",
    "InboxManager",
    "InboxMessage",
    "Job",
    "JobManager",
    "Letter",
    "Lined",
    "Lock",
    "LockManager",
    "LockToken",
    "Message",
    "Metadata",
    "MetadataManager",
    "Notification",
    "NotificationManager",
    "PREPARED",
    "PruningManager",
    "OutboxEvent",
    "OutboxKey",
    "OutboxManager",
    "Place",
    "QueueControl",
    "QueueControlManager",
    "RateLimit",
    "RateLimitManager",
    "RatePeriod",
    "Result",
    "ResultManager",
    "Run",
    "ScheduleManager",
    "ScheduleOptions",
    "ScheduleRow",
    "ScheduledJob",
    "ScheduledTask",
    "Seen",
    "StreamConsumer",
    "StreamEvent",
    "Take",
    "UniqueKey",
    "Wanted",
    "WorkerProcess",
    "WorkerProcessManager",
    "alias",
]
