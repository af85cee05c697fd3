"""Settings for a child process: a file of SQLite that a power cut may destroy, and locks that fail."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

OPTIONS = {"timeout": 20, "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"}
DATABASES = {**DATABASES, "default": {**DATABASES["default"], "OPTIONS": OPTIONS}}
SILENCED_SYSTEM_CHECKS = os.environ.get("SILENCED", "").split(",")
