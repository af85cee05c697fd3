"""The settings of the tests, with some outboxes."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ("tests.app.outboxes",)}
