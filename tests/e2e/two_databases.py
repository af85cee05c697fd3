"""Settings for a child process: two aliases of ``TASKS``, with their jobs in two databases."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import TASKS

TASKS = {**TASKS, "far": {**TASKS["default"], "OPTIONS": {"DATABASE": "other"}}}
