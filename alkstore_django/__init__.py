"""Durable jobs, cron, outbox, locks and results in the database that a Django project already has."""

from __future__ import annotations

__version__ = "0.1.0"
