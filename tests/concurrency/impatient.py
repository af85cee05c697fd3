"""Settings for a child process: it waits half a second for the write lock of the file, no longer."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

OPTIONS = {**DATABASES["default"]["OPTIONS"], "timeout": 0.5}
DATABASES = {**DATABASES, "default": {**DATABASES["default"], "OPTIONS": OPTIONS}}
