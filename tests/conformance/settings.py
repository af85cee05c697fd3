"""Settings of the tests of conformance: those of the suite, and the other backend, where it is installed."""

from __future__ import annotations

import importlib.util

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

if importlib.util.find_spec("django_tasks_db"):
    INSTALLED_APPS = [*INSTALLED_APPS, "django_tasks_db"]
TASKS = {"default": {"BACKEND": "tests.conformance.shims.KeepingBackend", "QUEUES": []}}
