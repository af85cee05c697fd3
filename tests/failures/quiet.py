"""Settings of a worker whose tasks fail all the time: it says nothing about them."""

from __future__ import annotations

from tests.failures.settings import *  # noqa: F403

NOTHING = {"handlers": ["nowhere"], "level": "CRITICAL", "propagate": False}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"nowhere": {"class": "logging.NullHandler"}},
    "loggers": {"alkstore_django": NOTHING, "django.tasks": NOTHING},
}
