"""The admin's pages. What changes a row is an operation with a permission."""

from __future__ import annotations

from .dead import DeadJobAdmin
from .locks import LockAdmin
from .pauses import QueueControlAdmin
from .schedules import ScheduleAdmin
from .workers import WorkerProcessAdmin

__all__ = ["DeadJobAdmin", "LockAdmin", "QueueControlAdmin", "ScheduleAdmin", "WorkerProcessAdmin"]
