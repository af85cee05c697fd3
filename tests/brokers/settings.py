"""The settings of a worker that serves a recipe; the addresses come from the test."""

from __future__ import annotations

import json
import os

from tests.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ("recipe",)}
AMQP_URL = NATS_URL = REDIS_URL = os.environ.get("ALKSTORE_BROKER", "")
KAFKA = json.loads(os.environ.get("ALKSTORE_KAFKA", "{}"))
