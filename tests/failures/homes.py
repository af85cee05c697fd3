"""Where the jobs of a test are: a database of its own, on SQLite, PostgreSQL or MariaDB.

``default`` of the test's own process is this database as long as it is ``opened``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import OperationalError, connections

from tests.failures.servers import MariaDB, PostgreSQL, Server
from tests.processes import wait_until

NAME = "home"

SESSIONS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}
END_SESSION = {"postgresql": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}


class Home:
    """``server`` is None for SQLite, whose file is ``path``."""

    def __init__(self, settings: dict[str, Any], *, server: Any = None) -> None:
        self.settings = settings
        self.server = server

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find it."""
        return self.reached()

    def reached(self, *, settings: str = "tests.failures.settings", **changes: Any) -> dict[str, str]:
        """The same with another settings module, or with other values in the entry of ``DATABASES``."""
        options = {**self.settings.get("OPTIONS", {}), **changes.pop("OPTIONS", {})}
        entry = {**self.settings, **changes, "OPTIONS": options}
        return {
            "DJANGO_SETTINGS_MODULE": settings,
            "ALKSTORE_HOME": json.dumps(entry),
            "PGSSLMODE": "disable",
        }

    @property
    def vendor(self) -> str:
        return str(self.settings["ENGINE"].rpartition(".")[2]).removesuffix("3")

    @property
    def path(self) -> Path:
        return Path(self.settings["NAME"])

    @contextmanager
    def opened(self) -> Iterator[Home]:
        """Every connection of this process to ``default`` leads here."""
        before, entry = (
            connections.settings["default"],
            connections.configure_settings({"default": self.settings}),
        )
        old = connections["default"]
        connections.settings["default"] = entry["default"]
        del connections["default"]
        try:
            yield self
        finally:
            connections["default"].close()
            connections.settings["default"] = before
            connections["default"] = old

    def session_ids(self) -> set[int]:
        """The sessions of the database but our own."""
        with connections["default"].cursor() as cursor:
            cursor.execute(SESSIONS[self.vendor])
            return {int(session) for (session,) in cursor.fetchall()}

    def end_sessions(self) -> None:
        for session in self.session_ids():
            with connections["default"].cursor() as cursor, suppress(OperationalError):  # it has just ended
                cursor.execute(END_SESSION[self.vendor].format(session))

    def make_read_only(self, on: bool) -> None:
        """Refuse all writes, of sessions that are open, too."""
        if self.vendor == "mysql":
            self.server.execute(f"SET GLOBAL read_only = {'ON' if on else 'OFF'}")
            return
        self.server.execute(
            f"ALTER SYSTEM SET default_transaction_read_only = {'on' if on else 'off'}",
            "SELECT pg_reload_conf()",
        )

    def cut_idle_sessions(self, seconds: int | None) -> None:
        """End sessions that are idle for so long; None: never."""
        if self.vendor == "mysql":
            self.server.execute(f"SET GLOBAL wait_timeout = {28800 if seconds is None else seconds}")
            return
        limit = f"{seconds}s" if seconds else "0"
        self.server.execute(f"ALTER SYSTEM SET idle_session_timeout = '{limit}'", "SELECT pg_reload_conf()")
        # One that is idle takes it over with its next statement: for those that come now it is there first.
        show = "SHOW idle_session_timeout"
        wait_until(lambda: self.server.execute(show) == [(limit,)], what="the server has read it")

    def create(self) -> None:
        name = self.settings["NAME"]
        self.server.execute(f"CREATE DATABASE {name}", *self.server.admitting(name))

    def drop(self) -> None:
        """Delete the database, whoever uses it."""
        force = " WITH (FORCE)" if self.vendor == "postgresql" else ""
        self.server.execute(f"DROP DATABASE {self.settings['NAME']}{force}")

    def migrate(self) -> None:
        call_command("migrate", verbosity=0)

    def clear(self) -> None:
        """No rows are left of whoever was here before."""
        for model in [*apps.get_app_config("alkstore_django").get_models(), apps.get_model("auth.Group")]:
            if model._meta.managed:
                model._base_manager.all().delete()


def sqlite(path: Path) -> Home:
    """A file with the settings that the documentation asks for."""
    return Home(
        {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(path),
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    )


def on(server: Server) -> Home:
    """A fresh database of a server."""
    return Home(server.settings(NAME), server=server)


SERVERS: dict[str, type[Server]] = {"postgresql": PostgreSQL, "mysql": MariaDB}
