"""Settings for a child process: Django's connection pool (PostgreSQL, with psycopg_pool)."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

OPTIONS = {"pool": {"min_size": 1, "max_size": 6, "timeout": 5}}
DATABASES = {**DATABASES, "default": {**DATABASES["default"], "OPTIONS": OPTIONS}}
