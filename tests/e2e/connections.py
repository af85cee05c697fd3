"""Settings modules for each way in which Django can keep its connections."""

from __future__ import annotations

from importlib.util import find_spec

from tests.settings import DB

SETTINGS = ["tests.settings", "tests.e2e.persistent"]
if DB == "postgresql" and find_spec("psycopg_pool"):
    SETTINGS.append("tests.e2e.pooled")
