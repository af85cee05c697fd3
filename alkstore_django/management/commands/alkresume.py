"""``manage.py alkresume``: end the pause of a queue."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from alkstore_django import pauses
from alkstore_django.management.database import DatabaseCommand, answering, database


class Command(DatabaseCommand):
    help = "Ends the pause of queues."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queue", nargs="+", metavar="QUEUE")
        parser.add_argument("--database", help="Alias of the database. Default: the one that TASKS names.")

    def handle(self, *args: Any, **options: Any) -> None:
        using = database(options["database"])
        with answering(using):
            for name in options["queue"]:
                was_paused = pauses.resume(using, name)
                self.stdout.write(
                    f"Queue {name} is resumed." if was_paused else f"Queue {name} was not paused."
                )
