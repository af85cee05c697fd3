"""Settings for a child process: connections are kept from task to task."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES = {**DATABASES, "default": {**DATABASES["default"], "CONN_MAX_AGE": None}}
