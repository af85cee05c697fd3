"""``manage.py alkschedule``: what runs when, and what an expression means."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from alkstore_django.cron import Cron, CronError
from alkstore_django.management import forecasts
from alkstore_django.management.database import DatabaseCommand
from alkstore_django.management.flags import few, point


class Command(DatabaseCommand):
    help = "Shows what runs when, and what a cron expression means."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        check = actions.add_parser("check", help="What an expression means, and when it is due.")
        check.add_argument("expression", metavar="EXPR", help="""As one argument: "30 2 * * *".""")
        check.add_argument("--timezone", metavar="ZONE", help="Whose clocks count. Default: TIME_ZONE.")
        check.add_argument(
            "--from",
            dest="after",
            type=point,
            metavar="TIME",
            help="Look from then on, in ISO 8601; without an offset in TIME_ZONE. Default: now.",
        )
        check.add_argument("-n", type=few, default=5, metavar="N", help="How many instants (default: 5).")
        check.add_argument("--json", action="store_true", help="Print one object.")
        check.set_defaults(run=self.check_expression, skip_checks=True)

    def handle(self, *args: Any, **options: Any) -> None:
        options["run"](**options)

    def check_expression(self, expression: str, n: int, **options: Any) -> None:
        """Needs no database. The exit code is 1 if there can be no such schedule."""
        place = settings.TIME_ZONE if options["timezone"] is None else options["timezone"]
        after = aware(options["after"] or timezone.now())
        try:
            cron = Cron.parse(expression, place)
            if not cron.possible:
                raise CronError(f"{expression!r} is never due: there is no such date.")
        except CronError as error:
            if not options["json"]:
                raise CommandError(str(error)) from error
            found = {"expression": expression, "timezone": place, "valid": False, "error": str(error)}
            self.stdout.write(json.dumps(found, indent=2))
            sys.exit(1)
        upcoming, why = cron.upcoming(n, after=after), cron.why_not_portable(after)
        if options["json"]:
            found = {
                "expression": expression,
                "timezone": place,
                "valid": True,
                "canonical": cron.canonical,
                "portable": why is None,
                "why_not_portable": why,
                "description": cron.describe(),
                "upcoming": [instant.isoformat() for instant in upcoming],
            }
            self.stdout.write(json.dumps(found, indent=2))
            return
        self.stdout.write(f"Due {cron.describe()}, by the clocks of {place}.")
        self.stdout.write(f"Stored as {cron.canonical}")
        self.stdout.write("Portable: honker finds the same." if why is None else f"Not portable: {why}.")
        self.stdout.write("")
        self.stdout.writelines(f"{line}\n" for line in forecasts.lines(cron, upcoming, after))


def aware(moment: datetime) -> datetime:
    """In UTC; without ``USE_TZ``, moments are in ``TIME_ZONE``."""
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment, timezone.get_default_timezone())
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise CommandError(f"{moment.isoformat()} is too near to an end of the calendar.") from error
