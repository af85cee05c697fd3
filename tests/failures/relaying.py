"""Settings of workers that deliver the events of one outbox, and may kill themselves meanwhile."""

from __future__ import annotations

from tests.failures.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ("tests.failures.relayed",)}
