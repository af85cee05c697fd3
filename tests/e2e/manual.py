"""Settings for a child process: the project commits by hand."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES["default"]["AUTOCOMMIT"] = False
