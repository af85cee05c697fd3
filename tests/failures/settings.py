"""Settings of the processes of these tests: one database, whose entry the environment holds as JSON."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.settings import *  # noqa: F403

DATABASES: dict[str, Any] = {"default": json.loads(os.environ["ALKSTORE_HOME"])}
