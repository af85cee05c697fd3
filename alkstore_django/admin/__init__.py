"""The admin's pages. Everything is read-only; what changes a row is an operation with a permission."""

from __future__ import annotations

from .dead import DeadJobAdmin
from .locks import LockAdmin
from .pauses import QueueControlAdmin
from .workers import WorkerProcessAdmin

__all__ = ["DeadJobAdmin", "LockAdmin", "QueueControlAdmin", "WorkerProcessAdmin"]
