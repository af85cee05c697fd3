"""``manage.py alkhealth``: whether the jobs get done, for people, monitoring and probes."""

from __future__ import annotations

import json
import os
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from django.db import Error

from alkstore_django import diagnosis
from alkstore_django.checks import unsafe
from alkstore_django.diagnosis import Diagnosis, Finding
from alkstore_django.management.database import DatabaseCommand, database
from alkstore_django.management.flags import span

CODES = (
    *("database", "tables", "migrations", "settings", "clock-skew", "sequence"),
    *("no-worker", "stale-worker", "oldest-due", "paused", "dead-letters"),
    *("schedule", "scheduler", "leader"),
)


class Command(DatabaseCommand):
    help = "Tells whether the jobs get done. Exit code: 0 for healthy, 1 for a problem."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--json", action="store_true", help="Print one JSON document.")
        add(
            "--max-age",
            type=span,
            default=diagnosis.MAX_AGE,
            metavar="DURATION",
            help="How long a job may be due before that is a problem (default: 300 s).",
        )
        add(
            "--queue",
            action="append",
            default=[],
            metavar="NAME",
            help="This queue needs a worker, too, and all its jobs count, tasks or not; repeat for more.",
        )
        add(
            "--ignore",
            action="append",
            default=[],
            choices=CODES,
            metavar="FINDING",
            help="This is no problem here; repeat for more.",
        )
        add("--timeout", type=span, default=10, metavar="DURATION", help="Give up after it (default: 10 s).")
        add("--database", help="Alias of the database. Default: the one that TASKS names.")

    def handle(self, *args: Any, **options: Any) -> None:
        using = database(options["database"])

        def give_up() -> None:
            message = f"Database {using!r} does not answer within {options['timeout']} s."
            self.tell(Diagnosis(using, findings=[Finding("database", message)]), **options)
            sys.stdout.flush()
            os._exit(1)

        with within(options["timeout"], give_up):
            found = look(using, options["max_age"], options["queue"])
        found.findings = [
            replace(each, is_problem=each.is_problem and each.code not in options["ignore"])
            for each in found.findings
        ]
        self.tell(found, **options)
        if not found.is_healthy:
            sys.exit(1)

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: a probe is to be fast, and those that matter here are made by ``look``."""

    def tell(self, found: Diagnosis, **options: Any) -> None:
        if options["json"]:
            self.stdout.write(json.dumps(document(found), indent=2))
            return
        for finding in sorted(found.findings, key=lambda finding: not finding.is_problem):
            self.stdout.write(
                f"{'PROBLEM' if finding.is_problem else 'note'} {finding.code}: {finding.message}"
            )
        if found.is_healthy:
            self.stdout.write("Healthy.")


def look(using: str, max_age: int, queues: list[str]) -> Diagnosis:
    """Never raises what the database raises: that it cannot be asked is what was found."""
    try:
        found = diagnosis.diagnose(using, max_age, queues)
        found.findings += [Finding("settings", f"{each.id}: {each.msg}") for each in unsafe(using)]
    except Error as error:
        reason = " ".join(str(error).split())
        message = f"Database {using!r} cannot be asked: {reason}"
        return Diagnosis(using, findings=[Finding("database", message)])
    return found


def document(found: Diagnosis) -> dict[str, Any]:
    workers = [{**asdict(each), "is_stale": each.is_stale} for each in found.workers]
    return {"healthy": found.is_healthy, **asdict(found), "workers": workers}


@contextmanager
def within(seconds: int, otherwise: Callable[[], None]) -> Iterator[None]:
    """A connection may hang in ways that no setting bounds alike on every database."""
    timer = threading.Timer(seconds, otherwise)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
