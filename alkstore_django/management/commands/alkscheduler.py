"""``manage.py alkscheduler``: fire schedules until stopped, and run no task."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from alkstore_django import registry
from alkstore_django.exceptions import TablesMissing
from alkstore_django.leadership import RENEWAL
from alkstore_django.management import logs
from alkstore_django.management.database import DatabaseCommand, database
from alkstore_django.management.flags import pause
from alkstore_django.runtime.hygiene import check_kept_connections
from alkstore_django.runtime.lines import watch_lines
from alkstore_django.runtime.scheduler import INTERVAL, Scheduler
from alkstore_django.runtime.shutdown import Shutdown


class Command(DatabaseCommand):
    help = "Enqueues what schedules say, as every alkworker does beside its tasks. Stop it with TERM or INT."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--database", help="Alias of the database. Default: the one that TASKS names.")
        parser.add_argument(
            "--interval",
            type=pause,
            default=INTERVAL,
            metavar="SECONDS",
            help=f"How often it looks for schedules that others have changed (default: {INTERVAL:g}).",
        )

    def handle(self, *args: Any, **given: Any) -> None:
        if given["interval"] > RENEWAL:
            raise CommandError(f"--interval is at most {RENEWAL:g} seconds.")
        using = database(given["database"])
        undo = logs.configure(given["verbosity"])
        try:
            self.schedule(using, given["interval"])
        except TablesMissing as error:
            raise CommandError(str(error)) from error
        finally:
            undo()

    def schedule(self, using: str, interval: float) -> None:
        """Until stopped. Raises ``TablesMissing``."""
        check_kept_connections()
        watch_lines()
        registry.autodiscover()
        scheduler = Scheduler(using, interval)
        with Shutdown(0, wake=scheduler.stop):
            scheduler.run()
