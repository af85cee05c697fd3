"""Settings for a child process: a database without tables."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES = {**DATABASES, "default": {**DATABASES["default"], "NAME": f"{DATABASES['default']['NAME']}_bare"}}
