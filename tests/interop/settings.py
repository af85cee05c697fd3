"""Settings of our own processes beside honker's: those of the suite, and the tasks of this folder."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ["tests.interop.tasks"]}
