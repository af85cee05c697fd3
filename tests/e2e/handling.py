"""The settings of the tests, with handlers for some queues."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ("tests.app.handlers",)}
