"""Where the database servers of the test suite are: ALKSTORE_PG_HOST, ALKSTORE_MYSQL_PORT and so on."""

from __future__ import annotations

import os

DEFAULTS = {
    "postgresql": ("ALKSTORE_PG", {"HOST": "127.0.0.1", "PORT": "5432", "USER": "postgres", "PASSWORD": ""}),
    "mysql": ("ALKSTORE_MYSQL", {"HOST": "127.0.0.1", "PORT": "3306", "USER": "root", "PASSWORD": ""}),
}


def address(database: str) -> dict[str, str]:
    prefix, defaults = DEFAULTS[database]
    return {key: os.environ.get(f"{prefix}_{key}", default) for key, default in defaults.items()}
