"""``manage.py alkrelay``: a worker that serves outboxes and nothing else."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from alkstore_django import outbox, registry
from alkstore_django.exceptions import UnknownOutbox
from alkstore_django.management.database import database
from alkstore_django.runtime.options import Options
from alkstore_django.selection import escaped

from . import alkworker


class Command(alkworker.Command):
    help = (
        "Delivers the events of outboxes. alkworker serves them as well; this is for a process of their own."
    )

    def add_queue_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--outbox",
            action="append",
            default=[],
            metavar="NAME",
            help="The outbox to serve; repeat it for several, in order of precedence. Default: all.",
        )

    def options(self, given: dict[str, Any]) -> Options:
        registry.autodiscover()
        using = database(given["database"])
        try:
            wanted = [outbox.get(name) for name in given["outbox"]]
        except UnknownOutbox as error:
            raise CommandError(str(error)) from error
        for each in wanted:
            if not each.is_in(using):
                raise CommandError(
                    f"The outbox {each.name!r} is in database {each.using!r}, not in {using!r}."
                )
        wanted = wanted or [each for each in outbox.declared() if each.is_in(using)]
        if not wanted:
            raise CommandError(f"No outbox is declared for database {using!r}.")
        queues = [escaped(each.queue_name) for each in wanted]
        return super().options({**given, "queue": queues, "exclude_queue": [], "scheduler": False})
