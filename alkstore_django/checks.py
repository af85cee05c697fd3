"""System checks: what is wrong with the settings, and what to write instead.

Nothing here asks a database but ``check_databases``, which Django runs for the aliases that it is
asked for (``check --database``, ``migrate``). No check fails itself: a server may be away.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

import django
from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections
from django.utils.module_loading import import_string

from .conf import KEYS, settings
from .models import alias
from .sqlite_file import SQLITE_OPTIONS as SQLITE_OPTIONS
from .sqlite_file import pasted, problems

VENDORS = ("sqlite", "postgresql", "mysql")


def modules(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) and name for name in value)


def whole_seconds(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def either(value: object) -> bool:
    return isinstance(value, bool)


def directory(value: object) -> bool:
    return value is None or (isinstance(value, str | os.PathLike) and bool(os.fspath(value)))


def lifetime(value: object) -> bool:
    return value is None or whole_seconds(value)


LIFETIME = "a whole number of seconds, at least 1, or None"

KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "IMPORTS": (modules, "a list of module names"),
    "VISIBILITY_TIMEOUT": (whole_seconds, "a whole number of seconds, at least 1"),
    "SCHEDULES": (lambda value: isinstance(value, dict), "a dict of dicts by the name of the schedule"),
    "CATCH_UP_GRACE": (
        lambda value: value == 0 or whole_seconds(value),
        "a whole number of seconds, or 0",
    ),
    "DOORBELL": (either, "True or False"),
    "SOCKET_DIR": (directory, "the path of a directory, or None"),
    "NOTIFY": (either, "True or False"),
    "RESULT_TTL": (lifetime, LIFETIME),
    "DEAD_TTL": (lifetime, LIFETIME),
    "NOTIFICATION_TTL": (lifetime, LIFETIME),
    "STREAM_TTL": (lifetime, LIFETIME),
    "INBOX_TTL": (lifetime, LIFETIME),
}
"""For every key of ``ALKSTORE``: whether a value will do, and what will do in words."""


@register("alkstore")
def check_settings(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """E001 and E002, W001: the dict ``ALKSTORE``."""
    given: object = settings.given()
    if not isinstance(given, dict):
        return [Error(f"ALKSTORE must be a dict, not {given!r}.", id="alkstore_django.E001")]
    return [message for key, value in given.items() for message in _setting(key, value)]


def _setting(key: object, value: object) -> Iterator[CheckMessage]:
    if key not in KEYS:
        yield Warning(
            f"ALKSTORE has an unknown key {key!r}.", hint=_meant(key, KEYS), id="alkstore_django.W001"
        )
    elif key in KINDS and not KINDS[str(key)][0](value):
        yield Error(
            f"ALKSTORE[{key!r}] must be {KINDS[str(key)][1]}, not {value!r}.", id="alkstore_django.E002"
        )


@register("alkstore")
def check_schedules(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """E008: the schedules in ``ALKSTORE["SCHEDULES"]``."""
    if not isinstance(settings.given(), dict) or (django.VERSION < (6, 0) and not find_spec("django_tasks")):
        return []
    from . import declarations  # not without the backport, of which E003 speaks

    return [
        Error(
            f'ALKSTORE["SCHEDULES"]{where}: {why}',
            id="alkstore_django.E008",
        )
        for where, why in declarations.problems()
    ]


@register("alkstore")
def check_backport(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """E003 and W002: ``django.tasks`` came with Django 6.0; before, it is a package."""
    if django.VERSION >= (6, 0):
        return []
    if find_spec("django_tasks") is None:
        return [
            Error(
                f"Django {django.get_version()} has no django.tasks, and its backport is not installed.",
                hint='Run pip install "alkstore-django[backport]" and add "django_tasks" to INSTALLED_APPS.',
                id="alkstore_django.E003",
            )
        ]
    if not apps.is_installed("django_tasks"):
        return [
            Warning(
                "The backport of django.tasks is not in INSTALLED_APPS: its own checks do not run.",
                hint='Add "django_tasks" to INSTALLED_APPS.',
                id="alkstore_django.W002",
            )
        ]
    return []


@register("alkstore")
def check_aliases(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """E004 and W005: in which database the jobs are."""
    found: list[CheckMessage] = []
    for using, where in _job_aliases().items():
        if using not in connections:
            found.append(
                Error(
                    f"{where} is {using!r}, which is not in DATABASES.",
                    hint=_meant(using, tuple(connections)),
                    id="alkstore_django.E004",
                )
            )
        elif using != DEFAULT_DB_ALIAS:
            found.append(
                Warning(
                    f"Jobs are in the database {using!r} ({where}): "
                    f"to enqueue one is no part of a transaction on {DEFAULT_DB_ALIAS!r}.",
                    hint=f"A job may run although the data that it is about was rolled back. "
                    f"Keep both in one database, or enqueue within transaction.atomic(using={using!r}).",
                    id="alkstore_django.W005",
                )
            )
    return found


@register("alkstore")
def check_engines(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """E005, E006 and W003: what can be said of a database without asking it."""
    return [message for connection in _job_connections() for message in _engine(connection)]


def _engine(connection: Any) -> Iterator[CheckMessage]:
    if connection.vendor not in VENDORS:
        yield Error(
            f"The database {connection.alias!r} is {connection.vendor}: jobs can be in SQLite, "
            "PostgreSQL, MariaDB and MySQL.",
            id="alkstore_django.E005",
        )
    if connection.vendor != "sqlite":
        return
    if sqlite3.sqlite_version_info < (3, 38):
        yield Error(
            f"Python's SQLite library is {sqlite3.sqlite_version}; 3.38 or newer is needed.",
            id="alkstore_django.E006",
        )
    mode = connection.settings_dict["OPTIONS"].get("transaction_mode")
    if not connection.is_in_memory_db() and str(mode).upper() != "IMMEDIATE":
        yield Warning(
            f"The SQLite database {connection.alias!r} does not use transaction_mode IMMEDIATE: what reads "
            'before it writes can fail with "database is locked", whatever the timeout.',
            hint=pasted(connection),
            id="alkstore_django.W003",
        )


@register(Tags.database)
def check_databases(
    app_configs: object = None, databases: Sequence[str] | None = None, **kwargs: object
) -> list[CheckMessage]:
    """E007, W004, W006 and W007: what only the database itself knows, or its file."""
    found: list[CheckMessage] = []
    for connection in _job_connections():
        if connection.alias in (databases or ()):
            try:
                found += _database(connection)
            except (DatabaseError, InterfaceError, ImproperlyConfigured):
                continue  # it is away: whoever needs it will say so
    return found


def _database(connection: Any) -> Iterator[CheckMessage]:
    if connection.vendor == "sqlite":
        if not connection.is_in_memory_db():
            yield from problems(connection)
    elif connection.vendor in VENDORS and (lack := _lack(connection)):
        yield Error(
            f"The database {connection.alias!r} is too old: {lack}.",
            hint="Use MariaDB 10.6 or newer, MySQL 8.0.17 or newer, or PostgreSQL.",
            id="alkstore_django.E007",
        )


def unsafe(using: str) -> list[CheckMessage]:
    """What the checks say about one database, but for what the project has silenced."""
    connection = connections[using]
    found = [*_engine(connection), *_database(connection)]
    return [message for message in found if not message.is_silenced()]


def _lack(connection: Any) -> str:
    """What we need and a server does not have; empty if it has all."""
    if not connection.features.has_select_for_update_skip_locked:
        return "it has no SKIP LOCKED, so two workers would wait for each other"
    is_mysql = connection.vendor == "mysql" and not connection.mysql_is_mariadb
    if is_mysql and connection.mysql_version < (8, 0, 17):
        return "it has no utf8mb4_0900_bin, by which names are compared"
    return ""


def _job_aliases() -> dict[str, str]:
    """The aliases of the databases in which jobs are, and where that is said; all may be wrong."""
    if django.VERSION < (6, 0) and find_spec("django_tasks") is None:
        return {}
    from .backends import AlkstoreBackend

    found: dict[str, str] = {}
    tasks = getattr(django_settings, "TASKS", {})
    for name, params in tasks.items() if isinstance(tasks, dict) else ():
        try:
            backend = import_string(params["BACKEND"])
            if not issubclass(backend, AlkstoreBackend):
                continue
            using = (params.get("OPTIONS") or {}).get("DATABASE")
        except (ImportError, KeyError, TypeError, AttributeError):
            continue  # no backend at all: django.tasks says so
        where = f'TASKS[{name!r}]["OPTIONS"]["DATABASE"]' if using else "as the router says"
        using = alias(None) if not using else using if isinstance(using, str) else repr(using)
        found.setdefault(using, where)
    return found or {alias(None): "as the router says"}


def _job_connections() -> Iterator[Any]:
    for using in _job_aliases():
        if using in connections:
            try:
                yield connections[using]
            except ImproperlyConfigured:
                continue  # its driver is not installed: Django says so


def _meant(word: object, known: Sequence[str]) -> str:
    """Which of the known words was meant, or all of them."""
    for near in get_close_matches(str(word).upper(), [each.upper() for each in known], n=1):
        return f"Did you mean {next(each for each in known if each.upper() == near)!r}?"
    return f"There are: {', '.join(known)}."
