"""Settings for a child process: a database that cannot be reached."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, TEST_DIR

NOWHERE = {"NAME": str(TEST_DIR / "nowhere" / "db"), "HOST": "127.0.0.1", "PORT": "1"}
DATABASES = {**DATABASES, "default": {**DATABASES["default"], **NOWHERE}}
