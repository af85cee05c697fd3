"""Settings for a child process: a developer's, with an app ``fresh`` on ``PYTHONPATH``."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

DEBUG = os.environ.get("TEST_DEBUG") == "1"
INSTALLED_APPS = [*INSTALLED_APPS, "fresh"]
# Django's own lines under DEBUG would only be in the way.
LOGGING_CONFIG = None
