"""``manage.py alkschedule``: what runs when, run it now, pause it; and what an expression means."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from alkstore_django import registry, schedules
from alkstore_django.management import forecasts
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.flags import few, point
from alkstore_django.management.moments import moment
from alkstore_django.management.tables import printable, table
from alkstore_django.management.verdicts import Verdict
from alkstore_django.schedules import Schedule

COLUMNS = ("schedule", "expression", "zone", "owner", "state", "next", "last", "skipped")
TEXTS = 7
"""Columns of the list that are texts, before the numbers."""

NAMED = 20
"""Names that are offered for one that is not there."""


class Command(DatabaseCommand):
    help = "Shows schedules, runs one now, pauses and resumes them, and explains cron expressions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

        def action(name: str, run: Callable[..., None], help: str, **defaults: Any) -> ArgumentParser:
            found: ArgumentParser = actions.add_parser(name, help=help, description=help)
            found.add_argument("--json", action="store_true", help="Print one JSON document.")
            found.set_defaults(run=run, **defaults)
            return found

        def stored(name: str, run: Callable[..., None], help: str, names: Any = None) -> ArgumentParser:
            found = action(name, run, help)
            if names is not None:
                found.add_argument("names", nargs=names, metavar="NAME")
            found.add_argument("--database", help="Alias of the database. Default: the one that TASKS names.")
            return found

        few_instants: dict[str, Any] = {"type": few, "default": 5, "metavar": "N"}
        stored("list", self.list, "All schedules, those of other programs too.")
        found = stored("next", self.next, "When a schedule is due next.", names=1)
        found.add_argument("-n", help="How many instants (default: 5).", **few_instants)
        stored("run", self.run_now, "Put in a job now; the next boundary stays.", names=1)
        stored("pause", self.pause, "Let schedules fire no more.", names="+")
        stored("resume", self.resume, "Let them fire again, from now on.", names="+")
        stored(
            "sync", self.sync, "Write what the code and the settings declare, as workers do when they start."
        )
        check = action("check", self.check_expression, CHECK, skip_checks=True)
        check.add_argument("expression", metavar="EXPR", help="""As one argument: "30 2 * * *".""")
        check.add_argument("--timezone", metavar="ZONE", help="Whose clocks count. Default: TIME_ZONE.")
        check.add_argument(
            "--from",
            dest="after",
            type=point,
            metavar="TIME",
            help="Look from then on, in ISO 8601; without an offset in TIME_ZONE. Default: now.",
        )
        check.add_argument("-n", help="How many instants (default: 5).", **few_instants)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "check":
            options["run"](**options)
            return
        using = database(options["database"])
        try:
            with answering(using):
                options["run"](using=using, **options)
        except ValueError as error:
            raise CommandError(str(error)) from error

    # -- looking ----------------------------------------------------------------------------------

    def list(self, using: str, **options: Any) -> None:
        found = schedules.list(using=using)
        if options["json"]:
            self.tell([document(each) for each in found])
            return
        if not found:
            self.stdout.write("There is no schedule.")
            return
        rows = [
            (
                *(each.name, each.expression, each.timezone, each.owner, state(each)),
                *(shown(each.next_fire_at), shown(each.last_fire_at), each.skipped),
            )
            for each in found
        ]
        self.stdout.write(table(COLUMNS, rows, texts=TEXTS))
        for each in found:
            if each.problem:
                self.stdout.write(printable(f"{each.name} stands still: {each.problem}"))

    def next(self, using: str, names: Sequence[str], n: int, **options: Any) -> None:
        (found,) = named(using, names)
        upcoming = found.upcoming(n)
        if options["json"]:
            self.tell({**document(found), "upcoming": [each.isoformat() for each in upcoming]})
            return
        name, cron = printable(found.name), found.cron
        if found.next_fire_at is None or cron is None:
            why = f": {printable(found.problem)}" if found.problem else "."
            self.stdout.write(f"Schedule {name} is {state(found)}, and not due{why}")
            return
        self.stdout.write(f"Schedule {name} is due {forecasts.described(cron)}.\n\n")
        after = min(timezone.now().astimezone(UTC), found.next_fire_at)
        self.stdout.writelines(f"{line}\n" for line in forecasts.lines(cron, upcoming, after))

    def check_expression(self, expression: str, n: int, **options: Any) -> None:
        """Needs no database. The exit code is 1 if there can be no such schedule."""
        place = settings.TIME_ZONE if options["timezone"] is None else options["timezone"]
        found = Verdict.of(expression, place, aware(options["after"] or timezone.now()), n)
        if options["json"]:
            self.tell(found.document())
            if found.error:
                sys.exit(1)
            return
        if found.error:
            raise CommandError(found.error)
        self.stdout.writelines(f"{line}\n" for line in found.lines())

    # -- doing ------------------------------------------------------------------------------------

    def run_now(self, using: str, names: Sequence[str], **options: Any) -> None:
        (found,) = named(using, names)
        job_id = schedules.run_now(found.name, using=using)
        if options["json"]:
            self.tell({"name": found.name, "queue": found.queue, "job_id": job_id})
        elif job_id is not None:
            self.stdout.write(f"Job {job_id} is enqueued in queue {printable(found.queue)}.")
        if job_id is None:
            raise CommandError("No job was put in: the last one lives, or another has the key of its task.")

    def pause(self, using: str, names: Sequence[str], **options: Any) -> None:
        self.change(using, names, schedules.pause, "paused", "was paused already", **options)

    def resume(self, using: str, names: Sequence[str], **options: Any) -> None:
        self.change(using, names, schedules.resume, "resumed", "was not paused", **options)

    def change(
        self, using: str, names: Sequence[str], act: Any, done: str, left: str, **options: Any
    ) -> None:
        """What cannot be changed stops nothing, and is said at the end."""
        found: list[dict[str, Any]] = []
        for each in named(using, names):
            is_changed, error = attempt(using, each.name, act)
            found.append({"name": each.name, done: is_changed, **({"error": error} if error else {})})
            if not error and not options["json"]:
                self.stdout.write(f"Schedule {printable(each.name)} {f'is {done}' if is_changed else left}.")
        if options["json"]:
            self.tell(found)
        if errors := [printable(each["error"]) for each in found if "error" in each]:
            raise CommandError("\n".join(errors))

    def sync(self, using: str, **options: Any) -> None:
        registry.autodiscover()
        report = schedules.sync(using=using)
        if options["json"]:
            self.tell(asdict(report))
        else:
            for word in ("added", "changed", "withdrawn"):
                for name in getattr(report, word):
                    self.stdout.write(f"Schedule {name} is {word}.")
            self.stdout.write(f"{len(report.unchanged)} unchanged.")
        if report.refused:
            raise CommandError("\n".join(f"Schedule {name}: {why}" for name, why in report.refused.items()))

    def tell(self, found: Any) -> None:
        self.stdout.write(json.dumps(found, indent=2))


CHECK = "What an expression means, and when it is due; needs no database."


def named(using: str, names: Sequence[str]) -> list[Schedule]:
    """The schedules of these names. Raises ``CommandError``, which says what there is instead."""
    found = {name: schedules.get(name, using=using) for name in names}
    if missing := [name for name, each in found.items() if each is None]:
        there = [each.name for each in schedules.list(using=using)]
        more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
        offer = f"there are {', '.join(there[:NAMED])}{more}" if there else "there is none at all"
        raise CommandError(printable(f"There is no schedule {missing[0]!r}; {offer}."))
    return [each for each in found.values() if each is not None]


def attempt(using: str, name: str, act: Any) -> tuple[bool, str]:
    """Whether it was changed; and, if it cannot be, why: it may be gone since it was looked for."""
    try:
        is_changed = act(name, using=using)
    except ValueError as error:
        return False, str(error)
    is_there = is_changed or schedules.get(name, using=using) is not None
    return is_changed, "" if is_there else f"There is no schedule {name!r} any more."


def document(schedule: Schedule) -> dict[str, Any]:
    """All there is to know, moments in ISO 8601."""
    found = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(schedule).items()
    }
    cron, why = schedule.cron, schedule.why_not_portable
    return {
        **found,
        "state": state(schedule),
        "description": None if cron is None else cron.describe(),
        "portable": why is None,
        "why_not_portable": why,
    }


def state(schedule: Schedule) -> str:
    if schedule.withdrawn:
        return "withdrawn"
    if not schedule.enabled:
        return "paused"
    return "broken" if schedule.problem is not None else "on"


def shown(instant: datetime | None) -> str:
    return "-" if instant is None else moment(int(instant.timestamp()))


def aware(given: datetime) -> datetime:
    """In UTC; without ``USE_TZ``, moments are in ``TIME_ZONE``."""
    if timezone.is_naive(given):
        given = timezone.make_aware(given, timezone.get_default_timezone())
    try:
        return given.astimezone(UTC)
    except OverflowError as error:
        raise CommandError(f"{given.isoformat()} is too near to an end of the calendar.") from error
