"""``manage.py alkpause``: let workers claim nothing of a queue for a while."""

from __future__ import annotations

import getpass
import socket
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from alkstore_django import pauses, status
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.flags import span
from alkstore_django.management.moments import moment
from alkstore_django.queues import Queue


class Command(DatabaseCommand):
    help = "Pauses queues: no worker claims anything of them until they are resumed. Running tasks go on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queue", nargs="+", metavar="QUEUE")
        parser.add_argument(
            "--for",
            dest="for_",
            type=span,
            metavar="DURATION",
            help="Such as 90s, 10m, 2h or 1d, or seconds. Default: until alkresume.",
        )
        parser.add_argument("--by", default=None, metavar="NAME", help="Who pauses it. Default: user@host.")
        parser.add_argument("--database", help="Alias of the database. Default: the one that TASKS names.")

    def handle(self, *args: Any, **options: Any) -> None:
        using = database(options["database"])
        try:
            queues = [Queue(name, using=using) for name in options["queue"]]
            with answering(using):
                for queue in queues:
                    queue.pause(options["for_"], by=whoever() if options["by"] is None else options["by"])
                self.tell(using, options["queue"])
        except ValueError as error:
            raise CommandError(str(error)) from error

    def tell(self, using: str, names: list[str]) -> None:
        found = {pause.queue: pause for pause in pauses.paused(using)}
        for name in names:
            self.stdout.write(f"Queue {name} {state(found.get(name))}.")
            if not status.is_known(using, name):
                self.stderr.write(f"Note: no job is in queue {name}, and no worker serves it.")


def state(pause: pauses.Pause | None) -> str:
    if pause is None:
        return "was paused, and is not any more"
    return f"is paused until {'it is resumed' if pause.until is None else moment(pause.until)}"


def whoever() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:191]
