"""``manage.py alklock``: who holds which lock, and take one away from a holder that is gone."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from alkstore_django import locks
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.moments import moment
from alkstore_django.management.tables import printable, table

COLUMNS = ("lock", "owner", "until")


class Command(DatabaseCommand):
    help = "Shows who holds which lock, and releases locks by force."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        shown = actions.add_parser("list", help="All locks that are held.")
        shown.add_argument("--json", action="store_true", help="Print one JSON document.")
        freed = actions.add_parser(
            "release", help="Take locks away from their holders, which does not stop these."
        )
        freed.add_argument("names", nargs="+", metavar="NAME")
        freed.add_argument("--owner", help="Only if that one has it.")
        for each in (shown, freed):
            each.add_argument("--database", help="Alias of the database. Default: the one that TASKS names.")

    def handle(self, *args: Any, **options: Any) -> None:
        using = database(options["database"])
        with answering(using):
            if options["action"] == "list":
                self.show(using, as_json=options["json"])
            else:
                self.release(using, options["names"], options["owner"])

    def show(self, using: str, *, as_json: bool) -> None:
        found = locks.held(using)
        if as_json:
            rows = [
                {
                    "name": each.name,
                    "owner": each.owner,
                    "expires_at": each.expires_at.isoformat() if each.expires_at else None,
                }
                for each in found
            ]
            self.stdout.write(json.dumps(rows, indent=2))
        elif found:
            self.stdout.write(
                table(COLUMNS, [(each.name, each.owner, until(each)) for each in found], texts=3)
            )
        else:
            self.stdout.write("No lock is held.")

    def release(self, using: str, names: list[str], owner: str | None) -> None:
        kept = []
        for name in names:
            if locks.force_release(name, using, owner):
                self.stdout.write(f"Lock {printable(name)} is released.")
            else:
                kept.append(printable(name))
        if kept:
            by = f" by {printable(owner)}" if owner else ""
            raise CommandError(f"Not held{by}: {', '.join(kept)}.")


def until(holder: locks.Holder) -> str:
    return "-" if holder.expires_at is None else moment(int(holder.expires_at.timestamp()))
