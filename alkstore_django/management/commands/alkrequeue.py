"""``manage.py alkrequeue``: give dead letters a new life, by id or by what they are."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.core.management.base import CommandError

from alkstore_django import reviving
from alkstore_django.letters import LetterFilter, asked, find
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.flags import ago, job_id, positive, rate
from alkstore_django.management.interrupts import Interrupted, Interrupts
from alkstore_django.management.progress import Progress
from alkstore_django.management.tables import printable
from alkstore_django.runtime.pacing import Pace
from alkstore_django.values import MAX_INT

SHOWN = 100
"""Pairs of a queue and a task that are counted one by one."""

OTHERS = ("(others)", "(others)")


@dataclass(slots=True)
class Tally:
    """What was meant, and what has been done about it so far."""

    meant: Counter[tuple[str, str]] = field(default_factory=Counter)
    requeued: int = 0
    held: int = 0
    renumbered: dict[int, int] = field(default_factory=dict)

    def add(self, batch: reviving.Batch) -> None:
        self.requeued += len(batch.revived)
        self.held += len(batch.held)
        self.renumbered |= {old: new for old, new in batch.revived.items() if old != new}

    def __str__(self) -> str:
        text = f"{letters(self.requeued)} requeued"
        if self.renumbered:
            text += f", {len(self.renumbered)} of them under new ids"
        if self.held:
            stay = "stays: another job has its key" if self.held == 1 else "stay: other jobs have their keys"
            text += f"; {self.held} {stay}"
        return f"{text}."


class Command(DatabaseCommand):
    help = (
        "Gives dead letters a new life: those with the given ids, or all that the options mean. Each batch "
        "is a transaction, and the last line counts what was really moved. The exit code is 1 if a dead "
        "letter of a given id was not requeued, and 130 after Ctrl-C."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        several: dict[str, Any] = {"action": "append", "default": []}
        add("--id", nargs="+", action="extend", type=job_id, default=[], dest="ids", help="With these ids.")
        add("--queue", **several, metavar="NAME", help="Of this queue; repeat for more.")
        add("--task", **several, metavar="NAME", help="Of this task, * for anything; repeat for more.")
        add("--error", metavar="TEXT", help="Whose last error says this, in its message or its class.")
        add("--since", type=ago, metavar="WHEN", help="That died since then: 2h, or a date (and time).")
        add("--until", type=ago, metavar="WHEN", help="That died before then.")
        add("--all", action="store_true", help="All there are.")
        add("--limit", type=positive, metavar="N", help="At most so many.")
        add("--rate", type=rate, metavar="N/s", help="At most so many per second (or /m, /h).")
        add("--dry-run", action="store_true", help="Only count the dead letters that are meant.")
        add("--noinput", "--no-input", action="store_true", help="Do not ask first.")
        add("--database", help="Alias of the database. Default: the one that TASKS names.")
        add("--json", action="store_true", help="Print one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        using, given = database(options["database"]), self.given(options)
        tally, code = Tally(), 0
        with answering(using), Interrupts() as interrupts:
            try:
                self.run(using, filtered(using, given), interrupts, tally, options)
            except Interrupted as interruption:
                code = interruption.code
            except Exception:
                if tally.requeued:
                    self.stderr.write(f"Before that: {tally} It may have been a batch more.")
                raise
        if options["json"]:
            self.stdout.write(json.dumps(document(using, tally, code, options), indent=2))
        elif tally.requeued or tally.held:
            self.stdout.write(str(tally))
        if code:
            rest = "the others are as they were" if tally.requeued else "nothing was requeued"
            raise CommandError(f"Interrupted: {rest}.", returncode=code)
        self.judge(tally, options)

    def given(self, options: dict[str, Any]) -> dict[str, Any]:
        """The filters."""
        names = ("queue", "task", "error", "since", "until")
        given = {name: options[name] for name in names if options[name] not in (None, [])}
        if not (given or options["ids"] or options["all"]):
            raise CommandError("Say which: with --id, --queue, --task, --error, --since, --until, or --all.")
        if options["all"] and (given or options["ids"]):
            raise CommandError("--all goes with nothing that means less than all.")
        if asks(options):
            if options["json"]:
                raise CommandError("--json needs --dry-run or --noinput: it cannot ask.")
            if not (sys.stdin and sys.stdin.isatty()):
                raise CommandError("Nobody can be asked here: give --noinput, or --dry-run to look.")
        return given

    def run(
        self,
        using: str,
        wanted: LetterFilter,
        interrupts: Interrupts,
        tally: Tally,
        options: dict[str, Any],
    ) -> None:
        for letter in find(using, wanted, options["ids"], tasks=True):
            key = (letter.queue, letter.task or "(no task)")
            tally.meant[key if key in tally.meant or len(tally.meant) < SHOWN else OTHERS] += 1
        if not options["json"]:
            self.show(tally)
        if options["dry_run"] or not tally.meant:
            return
        if asks(options) and not self.is_sure(tally, options["limit"]):
            self.stdout.write("Nothing was requeued.")
            return
        self.requeue(using, wanted, interrupts, tally, options)

    def requeue(
        self,
        using: str,
        wanted: LetterFilter,
        interrupts: Interrupts,
        tally: Tally,
        options: dict[str, Any],
    ) -> None:
        most, pace = options["limit"] or MAX_INT, Pace(options["rate"])
        progress, total = Progress(sys.stderr), min(most, tally.meant.total())
        found = (letter.id for letter in find(using, wanted, options["ids"]))
        try:
            while ids := list(islice(found, pace.size(min(reviving.BATCH, most - tally.requeued)))):
                began, before = time.monotonic(), tally.requeued
                with interrupts.step():
                    tally.add(reviving.revive(using, ids, wanted))
                progress.show("requeued", tally.requeued, total)
                time.sleep(pace.rest(tally.requeued - before, time.monotonic() - began))
        finally:
            progress.end()

    def show(self, tally: Tally) -> None:
        """How many there are, by queue and task."""
        if not tally.meant:
            self.stdout.write("No dead letter matches.")
        for (queue, task), count in sorted(tally.meant.items()):
            self.stdout.write(printable(f"{queue}  {task}  {count}"))

    def is_sure(self, tally: Tally, limit: int | None) -> bool:
        total = tally.meant.total()
        what = f"{limit} of {letters(total)}" if limit and limit < total else letters(total)
        try:
            return input(f"Requeue {what}? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            return False

    def judge(self, tally: Tally, options: dict[str, Any]) -> None:
        """With ids, and without a limit, all of them were to be requeued."""
        ids = set(options["ids"])
        left = len(ids) - (tally.meant.total() if options["dry_run"] else tally.requeued)
        if ids and left and not options["limit"]:
            would = "would not be" if options["dry_run"] else "not"
            raise CommandError(f"{letters(left)} of {len(ids)} {would} requeued.")


def asks(options: dict[str, Any]) -> bool:
    return not (options["noinput"] or options["dry_run"])


def filtered(using: str, given: dict[str, Any]) -> LetterFilter:
    try:
        return asked(using, **given)
    except ValueError as error:
        raise CommandError(str(error)) from error


def document(using: str, tally: Tally, code: int, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "database": using,
        "dry_run": options["dry_run"],
        "interrupted": bool(code),
        "meant": [
            {"queue": queue, "task": task, "count": count}
            for (queue, task), count in sorted(tally.meant.items())
        ],
        "requeued": tally.requeued,
        "held": tally.held,
        "renumbered": [{"id": old, "new_id": new} for old, new in tally.renumbered.items()],
    }


def letters(count: int) -> str:
    return f"{count} dead letter" if count == 1 else f"{count} dead letters"
