"""``manage.py alkprune``: delete what has been kept for long enough, as a worker does by itself."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError

from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.flags import few, span
from alkstore_django.management.interrupts import Interrupted, Interrupts
from alkstore_django.management.progress import Progress
from alkstore_django.management.tables import table
from alkstore_django.pruning import MOST, Pass, count
from alkstore_django.retention import AGED, KINDS, Ends, Rule, chosen
from alkstore_django.runtime.cleaning import clean


class Command(DatabaseCommand):
    help = (
        "Deletes what has been kept for long enough, in short transactions, while all goes on. Jobs that "
        "wait or run are never touched."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--dry-run", action="store_true", help="Only tell how much would be deleted, and by what age.")
        add(
            "--only",
            action="append",
            choices=tuple(KINDS),
            default=[],
            metavar="KIND",
            help=f"Only this kind; repeat for more: {', '.join(KINDS)}.",
        )
        add(
            "--older-than",
            type=span,
            metavar="AGE",
            help=f"Instead of the age that is set: 90s, 10m, 2h or 30d. With --only, for {', '.join(AGED)}.",
        )
        add(
            "--batch-size",
            type=few,
            default=MOST,
            metavar="N",
            help=f"Rows that one transaction deletes at most (default: {MOST}); fewer, where they take long.",
        )
        add("--database", help="Alias of the database. Default: the one that TASKS names.")
        add("--json", action="store_true", help="Print one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        using, only, age = database(options["database"]), options["only"], options["older_than"]
        if age is not None and not (only and set(only) <= set(AGED)):
            raise CommandError(f"--older-than needs --only with {', '.join(AGED)}: the others have no age.")
        with answering(using):
            rules = chosen(using, only, {} if age is None else dict.fromkeys(only, age))
            if options["dry_run"]:
                self.tell(
                    using, rules, {rule.kind: count(using, rule, rules) for rule in rules}, 0, **options
                )
                return
            steps, code = Pass(using, rules, options["batch_size"]), 0
            try:
                self.prune(using, rules, steps)
            except Interrupted as interruption:
                code = interruption.code
            finally:
                self.tell(using, rules, steps.deleted, code, **options)
        if code:
            raise CommandError("Interrupted: the rest is as it was.", returncode=code)

    def prune(self, using: str, rules: Sequence[Rule], steps: Pass) -> None:
        progress, totals = Progress(sys.stderr), dict[str, int]()
        by_kind = {rule.kind: rule for rule in rules}

        def show(kind: str) -> None:
            if progress.is_on:
                if kind not in totals:
                    totals[kind] = count(using, by_kind[kind]) + steps.deleted[kind]
                progress.show(kind, steps.deleted[kind], totals[kind])

        with Interrupts() as interrupts:
            try:
                clean(steps, show, interrupts.step)
            finally:
                progress.end()

    def tell(
        self, using: str, rules: Sequence[Rule], counts: Mapping[str, int], code: int, **options: Any
    ) -> None:
        is_dry = options["dry_run"]
        if options["json"]:
            key = "would_be_deleted" if is_dry else "deleted"
            found = [document(rule) | {key: counts[rule.kind]} for rule in rules]
            head = {"database": using, "dry_run": is_dry, "interrupted": bool(code)}
            self.stdout.write(json.dumps(head | {"kinds": found}, indent=2))
            return
        titles = ("kind", "kept", "would be deleted" if is_dry else "deleted")
        lines = [(rule.kind, kept(rule), f"{counts[rule.kind]:,}") for rule in rules]
        self.stdout.write(table(titles, lines, texts=2))


def document(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, "ends": str(rule.ends), "setting": rule.setting, "age": rule.age}


def kept(rule: Rule) -> str:
    """For how long, in words."""
    if rule.is_kept:
        return "for ever"
    if rule.age is None:
        return {Ends.EXPIRY: "until it ends", Ends.ORPHAN: "while it belongs to something"}[rule.ends]
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if rule.age % size == 0:
            return f"{rule.age // size} {unit}"
    return f"{rule.age} s"
