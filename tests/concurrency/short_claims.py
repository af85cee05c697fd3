"""Settings for a child process: it knows the tasks with short claims from the start."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ["tests.app.short_claims"]}
