"""Settings for a child process: a filter of the log raises."""

from __future__ import annotations

import logging

from tests.settings import *  # noqa: F403


class Choosy(logging.Filter):
    """Of the project's own making, and not right: it fails on the line of whatever failed."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING or bool(record.exc_info[1].code)  # type: ignore


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"choosy": {"()": "tests.e2e.choosy.Choosy"}},
    "handlers": {"own": {"class": "logging.StreamHandler", "filters": ["choosy"]}},
    "loggers": {"alkstore_django": {"handlers": ["own"], "level": "INFO"}},
}
