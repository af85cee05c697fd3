"""Which database the shop has: the environment chooses.

``ALKSTORE_DB`` is ``sqlite`` (the default), ``postgresql`` or ``mysql``. Servers are found through
``ALKSTORE_PG_HOST``, ``_PORT``, ``_USER``, ``_PASSWORD`` and the same with ``ALKSTORE_MYSQL``; there
the database is ``<prefix>_shop``, the prefix from ``ALKSTORE_DB_PREFIX`` (default ``alkstore``).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

SERVERS = {
    "postgresql": ("ALKSTORE_PG", {"HOST": "127.0.0.1", "PORT": "5432", "USER": "postgres", "PASSWORD": ""}),
    "mysql": ("ALKSTORE_MYSQL", {"HOST": "127.0.0.1", "PORT": "3306", "USER": "root", "PASSWORD": ""}),
}


def chosen(directory: Path, *, demo: bool) -> dict[str, Any]:
    """The ``default`` entry of ``DATABASES``. The demo never uses a database that anybody named."""
    kind = os.environ.get("ALKSTORE_DB") or "sqlite"
    if kind == "sqlite":
        named = None if demo else os.environ.get("ALKSTORE_DB_FILE")
        return sqlite(Path(named) if named else directory / "shop.sqlite3")
    if kind not in SERVERS:
        raise ImproperlyConfigured(f"ALKSTORE_DB is sqlite, postgresql or mysql, not {kind!r}.")
    name = f"{os.environ.get('ALKSTORE_DB_PREFIX') or 'alkstore'}_shop{'_demo' if demo else ''}"
    return server(kind, name)


def sqlite(path: Path) -> dict[str, Any]:
    """A file that a web server and workers can write to at the same time."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path.resolve(),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def server(kind: str, name: str) -> dict[str, Any]:
    variable, defaults = SERVERS[kind]
    address = {key: os.environ.get(f"{variable}_{key}", default) for key, default in defaults.items()}
    options = {"charset": "utf8mb4"} if kind == "mysql" else {}
    return {"ENGINE": f"django.db.backends.{kind}", "NAME": name, "OPTIONS": options, **address}
