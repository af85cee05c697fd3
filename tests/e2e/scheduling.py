"""Settings of a project with schedules, in its code and here."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

ALKSTORE = {
    "IMPORTS": ["tests.app.scheduled"],
    "SCHEDULES": {
        "of the settings": {"task": "tests.app.tasks.add", "expression": "@daily", "args": [1, 2]},
    },
}
