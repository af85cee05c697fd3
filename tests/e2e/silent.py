"""Settings for a child process: nothing rings and nothing notifies, and nobody listens."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

ALKSTORE = {"DOORBELL": False, "NOTIFY": False}
