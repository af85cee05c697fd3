"""Which wake a worker gets."""

from __future__ import annotations

from alkstore_django import wakes
from alkstore_django.logs import get_logger

from .base import Several, Wake
from .data_version import DataVersion
from .doorbell import hang
from .listening import Listening
from .polling import Polling

logger = get_logger("alkstore_django.worker")


def choose(using: str, listens: bool, interval: float | None) -> Wake:
    """The best that the database has; without ``listens`` it is only polled, every ``interval`` seconds."""
    if not listens:
        return Polling(interval)
    means = wakes.means(using)
    if means.listens:
        return Listening(using)
    if not means.watches:
        return Polling(interval)
    bell = hang(means.file, means.directories)
    if bell is None:
        logger.info("No doorbell for %r: %s.", using, means.obstacle or "no directory would take it")
        return DataVersion(using)
    return Several([bell, DataVersion(using)])
