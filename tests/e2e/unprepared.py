"""Settings for a child process: as behind a pooler, so that every statement's text is on the wire."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES = {**DATABASES, "default": {**DATABASES["default"], "DISABLE_SERVER_SIDE_CURSORS": True}}
