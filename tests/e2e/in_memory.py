"""The settings of most projects: test databases of SQLite in memory, and no options."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

DATABASES = {
    alias: {"ENGINE": "django.db.backends.sqlite3", "NAME": f"never made {alias}"}
    for alias in ("default", "other")
}
