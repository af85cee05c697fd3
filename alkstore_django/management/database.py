"""What the commands have in common: they are about the jobs of one database, which may be away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connections

from alkstore_django import served
from alkstore_django.health import missing_tables


class DatabaseCommand(BaseCommand):
    """A command whose start does not depend on a database that answers."""

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Django's system checks, as far as they can be had: for MySQL some ask each server."""
        try:
            super().check(*args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            self.stderr.write(f"System checks were cut short: a database does not answer: {error}")


def database(alias: str | None) -> str:
    """The alias asked for, or the only one that holds jobs of ours."""
    if alias is not None:
        if alias not in connections:
            raise CommandError(f"There is no database {alias!r}; there are {', '.join(connections)}.")
        return _committing(alias)
    found = served.databases()
    if len(found) > 1:
        raise CommandError(f"TASKS names several databases ({', '.join(found)}): choose one with --database.")
    return _committing(found[0])


def _committing(alias: str) -> str:
    if not connections[alias].settings_dict["AUTOCOMMIT"]:
        raise CommandError(
            f"Database {alias!r} has AUTOCOMMIT off, so that Django commits nothing by itself: workers and "
            "commands need it on. Name another alias of the same database, which has it, with --database."
        )
    return alias


@contextmanager
def answering(using: str) -> Iterator[None]:
    """A ``CommandError`` of one line for a database that does not answer, or has no tables of ours."""
    try:
        if missing := missing_tables(using):
            raise CommandError(f"Database {using!r} has no table {missing[0]}: run manage.py migrate.")
        yield
    except (OperationalError, InterfaceError) as error:
        reason = " ".join(str(error).split())
        raise CommandError(f"Database {using!r} does not answer: {reason}") from error
