"""``manage.py alkimport``: move the tasks that wait in django-tasks-db to our queues."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import CommandError

from alkstore_django import registry
from alkstore_django.compat import TaskResultStatus
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.moving import NothingToMove, Source


class Command(DatabaseCommand):
    help = (
        "Moves the waiting tasks of django-tasks-db to the queues of this app, some hundred in each "
        "transaction. The exit code is 1 if any was left."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only tell what would be moved.")
        parser.add_argument("--database", help="Alias of the database. Default: the one that TASKS names.")

    def handle(self, *args: Any, **options: Any) -> None:
        using, is_dry = database(options["database"]), options["dry_run"]
        registry.autodiscover()
        with answering(using):
            try:
                source = Source(using)
            except NothingToMove as error:
                raise CommandError(str(error)) from error
            moved: Counter[tuple[str, str]] = Counter()
            joined: Counter[tuple[str, str]] = Counter()
            left: Counter[tuple[str, str, str]] = Counter()
            for batch in source.move(dry_run=is_dry):
                moved.update((waiting.queue, waiting.path) for waiting, _ in batch.moved)
                joined.update((waiting.queue, waiting.path) for waiting in batch.joined)
                left.update((waiting.queue, waiting.path, reason) for waiting, reason in batch.left)
                if options["verbosity"] > 1 and not is_dry:
                    for waiting, job_id in batch.moved:
                        self.stdout.write(f"{waiting.id} is {job_id}")
            counts = source.counts()
        verb = "would be moved" if is_dry else "moved"
        for (queue, path), count in sorted(moved.items()):
            same = joined[queue, path]
            unique = f", {same} of them to a job with the same unique key" if same else ""
            self.stdout.write(f"{queue}  {path}  {count} {verb}{unique}")
        for (queue, path, reason), count in sorted(left.items()):
            self.stderr.write(f"{queue}  {path}  {count} left: {reason}")
        self.tell_of_others(source, counts)
        self.stdout.write(f"{tasks(moved.total())} {verb}.")
        if left:
            raise CommandError(f"{tasks(left.total())} left.")

    def tell_of_others(self, source: Source, counts: dict[tuple[str, str], int]) -> None:
        """What is not meant to be moved, but may be what somebody waits for."""
        for (alias, status), count in sorted(counts.items()):
            if status == TaskResultStatus.RUNNING:
                self.note(f"{tasks(count)} of backend {alias!r} RUNNING; if no worker runs, it was lost.")
            elif status == TaskResultStatus.READY and not source.is_ours(alias):
                self.note(f"{tasks(count)} of backend {alias!r} READY; TASKS has none of ours of that name.")

    def note(self, text: str) -> None:
        self.stderr.write(f"Note: {text}")


def tasks(count: int) -> str:
    return f"{count} task" if count == 1 else f"{count} tasks"
