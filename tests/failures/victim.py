"""Settings of a worker that stops at one moment of its life."""

from __future__ import annotations

from tests.failures.settings import *  # noqa: F403
from tests.failures.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.failures.moments.MomentsConfig"]
