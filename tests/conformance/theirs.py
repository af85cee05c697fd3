"""Settings of a project that has django-tasks-db still, for a worker of theirs."""

from __future__ import annotations

from tests.conformance.settings import *  # noqa: F403

TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
