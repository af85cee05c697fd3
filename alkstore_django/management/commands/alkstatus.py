"""``manage.py alkstatus``: how each queue stands."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from alkstore_django import status, wakes
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.moments import moment
from alkstore_django.management.tables import table
from alkstore_django.pauses import Pause

COLUMNS = ("queue", "ready", "delayed", "running", "dead", "oldest due")


class Command(DatabaseCommand):
    help = (
        "Shows per queue the jobs that are ready, delayed, running and dead, and how long the oldest waits."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--database", help="Alias of the database. Default: the one that TASKS names.")
        parser.add_argument("--json", action="store_true", help="Print a list of objects; ages in seconds.")

    def handle(self, *args: Any, **options: Any) -> None:
        using = database(options["database"])
        with answering(using):
            found = status.queues(using)
        if options["json"]:
            self.stdout.write(json.dumps([asdict(each) for each in found], indent=2))
        elif found:
            rows = [
                (each.queue, each.ready, each.delayed, each.running, each.dead, age(each.oldest_due))
                for each in found
            ]
            self.stdout.write(table(COLUMNS, rows))
        else:
            self.stdout.write("No queue has a job.")
        for each in found:
            if each.paused and not options["json"]:
                self.stdout.write(paused(each.paused))
        if not options["json"] and (means := wakes.means(using)).obstacle:
            self.stdout.write(f"What wakes idle workers: {means}.")


def paused(pause: Pause) -> str:
    """One line: since when, until when, by whom."""
    until = "it is resumed" if pause.until is None else moment(pause.until)
    by = f", by {pause.by}" if pause.by else ""
    return f"{pause.queue} is paused since {moment(pause.since)} until {until}{by}."


def age(seconds: int | None) -> str:
    """A duration for people: ``45 s``, ``12 min``, ``3 h``, ``4 d``."""
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{max(0, seconds)} s"
