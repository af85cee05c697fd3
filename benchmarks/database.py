"""Databases of the benchmark's own, made for each run and dropped after it: ``default``, and ``plain``
for what is to be compared with it in the same moment."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command

VENDORS = ("sqlite", "postgresql", "mysql")
ALIASES = ("default", "plain")
NAME = f"alkstore_benchmark_{os.getpid()}"


def _settings(vendor: str, directory: Path, alias: str) -> dict[str, Any]:
    env = os.environ.get
    if vendor == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(directory / f"{alias}.sqlite3"),
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    prefix, port, user = ("PG", "5432", "postgres") if vendor == "postgresql" else ("MYSQL", "3306", "root")
    return {
        "ENGINE": f"django.db.backends.{vendor}",
        "NAME": f"{NAME}_{alias}",
        "HOST": env(f"ALKSTORE_{prefix}_HOST", "127.0.0.1"),
        "PORT": env(f"ALKSTORE_{prefix}_PORT", port),
        "USER": env(f"ALKSTORE_{prefix}_USER", user),
        "PASSWORD": env(f"ALKSTORE_{prefix}_PASSWORD", ""),
        "OPTIONS": {"charset": "utf8mb4"} if vendor == "mysql" else {},
    }


@contextmanager
def fresh_database(vendor: str) -> Iterator[None]:
    """Configure Django on a new, migrated database; connections stay open, DEBUG is off."""
    directory = Path(tempfile.mkdtemp(prefix="alkstore-benchmark-"))
    configure({alias: {**_settings(vendor, directory, alias), "CONN_MAX_AGE": None} for alias in ALIASES})
    from django.db import connections

    def on_server(statement: str) -> None:
        if vendor != "sqlite":
            with connections["default"]._nodb_cursor() as cursor:
                for alias in ALIASES:
                    cursor.execute(f"{statement} {NAME}_{alias}")

    on_server("CREATE DATABASE")
    try:
        for alias in ALIASES:
            call_command("migrate", database=alias, verbosity=0)
        yield
    finally:
        connections.close_all()
        on_server("DROP DATABASE")
        shutil.rmtree(directory, ignore_errors=True)


def configure(databases: dict[str, Any]) -> None:
    backport = ["django_tasks"] if django.VERSION < (6, 0) else []
    settings.configure(
        DATABASES=databases,
        INSTALLED_APPS=["alkstore_django", "benchmarks", *backport],
        TASKS={"default": {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "QUEUES": []}},
        LOGGING={"version": 1, "disable_existing_loggers": False, "loggers": {"django": {"level": "ERROR"}}},
        ALKSTORE={"RESULT_TTL": 3600},
        USE_TZ=True,
    )
    django.setup()


def clear(alias: str = "default") -> None:
    """Empty the queue tables, and let the database forget the rows."""
    from django.db import connections

    from alkstore_django.sql import tables

    names = (tables.LIVE, tables.DEAD, tables.ATTEMPTS, tables.RUNS, tables.RESULTS)
    connection = connections[alias]
    with connection.cursor() as cursor:
        for table in names:
            cursor.execute(f"{'DELETE FROM' if connection.vendor == 'sqlite' else 'TRUNCATE TABLE'} {table}")
    analyze(alias)


def analyze(alias: str = "default") -> None:
    """Fresh statistics, as autovacuum would make in time; SQLite goes without, as honker's files do."""
    from django.db import connections

    from alkstore_django.sql import tables

    statements = {
        "sqlite": ["PRAGMA wal_checkpoint(TRUNCATE)"],
        "postgresql": [f"VACUUM ANALYZE {tables.LIVE}", f"VACUUM ANALYZE {tables.DEAD}", "CHECKPOINT"],
        "mysql": [
            f"ANALYZE TABLE {tables.LIVE}, {tables.DEAD}",
            f"FLUSH TABLES {tables.LIVE}, {tables.DEAD} FOR EXPORT",  # writes what the filling left in memory
            "UNLOCK TABLES",
        ],
    }
    connection = connections[alias]
    with connection.cursor() as cursor:
        for statement in statements[connection.vendor]:
            cursor.execute(statement)
            if connection.vendor != "postgresql":
                cursor.fetchall()
