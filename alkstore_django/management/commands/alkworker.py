"""``manage.py alkworker``: run tasks until stopped, or until nothing is left (``--batch``)."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import fields
from typing import Any

from django.core.management.base import CommandError

from alkstore_django import registry
from alkstore_django.exceptions import TablesMissing
from alkstore_django.management.database import database
from alkstore_django.management.flags import duration, pause, positive, size, writable_path
from alkstore_django.management.processes import ProcessCommand
from alkstore_django.names import checked
from alkstore_django.runtime import memory
from alkstore_django.runtime.hygiene import check_kept_connections
from alkstore_django.runtime.lines import watch_lines
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.recycling import spread
from alkstore_django.runtime.worker import Worker
from alkstore_django.selection import Selection


class Command(ProcessCommand):
    help = (
        "Runs background tasks. Stop it with TERM or INT: running tasks finish; a second signal interrupts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        self.add_queue_arguments(parser)
        self.add_worker_arguments(parser)

    def add_queue_arguments(self, parser: ArgumentParser) -> None:
        """What is served."""
        add = parser.add_argument
        add(
            "--queue",
            action="append",
            default=[],
            metavar="NAMES",
            help="Queues to serve: names, '*' or 'prefix*', with commas or repeated, in order of "
            "precedence. Default: those of TASKS.",
        )
        add(
            "--exclude-queue",
            action="append",
            default=[],
            metavar="NAMES",
            help="Queues not to serve, whatever else is said; as for --queue.",
        )
        add(
            "--no-scheduler",
            dest="scheduler",
            action="store_false",
            help="Leave the schedules to other processes. With --batch it does in any case.",
        )

    def add_worker_arguments(self, parser: ArgumentParser) -> None:
        """How it is served."""
        add = parser.add_argument
        add("--database", help="Alias of the database. Default: the one that TASKS names.")
        self.add_process_arguments(parser)
        add("--threads", type=positive, default=4, help="Tasks at the same time (default: 4).")
        add(
            "--async-concurrency",
            type=positive,
            default=20,
            metavar="N",
            help="Coroutine tasks at the same time, beside the threads (default: 20).",
        )
        add(
            "--prefetch",
            type=positive,
            default=32,
            metavar="N",
            help="Claim up to N very short tasks at once for each thread (default: 32).",
        )
        add(
            "--batch",
            "--burst",
            action="store_true",
            help="Exit when no job of the queues runs, is due, or waits for a retry.",
        )
        add("--max-tasks", type=positive, metavar="N", help="Exit after N tasks.")
        add("--max-seconds", type=positive, metavar="SECONDS", help="Exit after so long.")
        add("--max-rss", type=size, metavar="SIZE", help="Exit when it occupies more MB (or 2G) of memory.")
        add(
            "--max-idle",
            type=duration,
            metavar="SECONDS",
            help="Exit when there was nothing to do for so long.",
        )
        add(
            "--interval",
            type=pause,
            metavar="SECONDS",
            help="How often an idle worker looks for jobs that nothing told it of. Default: by database.",
        )
        add(
            "--no-listen",
            dest="listen",
            action="store_false",
            help="Let the database not wake the worker: it only looks.",
        )
        add(
            "--no-maintenance",
            dest="maintenance",
            action="store_false",
            help="Leave the deletion of what was kept for long enough to other processes, or to alkprune. "
            "With --batch it does in any case.",
        )
        add(
            "--visibility-timeout",
            type=positive,
            metavar="SECONDS",
            help="How long a claim holds without a renewal, for tasks that do not say it themselves.",
        )
        add(
            "--shutdown-timeout",
            type=duration,
            default=25,
            metavar="SECONDS",
            help="How long running tasks may go on after a stop (default: 25).",
        )
        add(
            "--health-file",
            type=writable_path,
            metavar="PATH",
            help="Write this file every 10 s while all is well: its age tells how the worker is.",
        )
        add("--worker-id", help="Default: made of host, process and a random part. Must be unique.")

    def validate(self, given: dict[str, Any]) -> None:
        self.options(given)

    def work(self, given: dict[str, Any]) -> int:
        options = self.options(given)
        check_kept_connections()
        watch_lines()
        registry.autodiscover()
        worker = Worker(options, begun=self.say_begun)
        if not worker.clerk.plan.serves_any:
            raise CommandError(
                f"There is no queue to serve: --exclude-queue leaves none, or TASKS has no backend of ours "
                f"on database {worker.using!r}; name a --queue."
            )
        self.follow(worker.shutdown.reach)
        try:
            code = worker.run()
        except TablesMissing as error:
            raise CommandError(str(error)) from error
        return self.exit_code(code, wants_replacement=worker.wants_replacement)

    def options(self, given: dict[str, Any]) -> Options:
        try:
            Selection(given["queue"], given["exclude_queue"])
            worker_id = given["worker_id"] and checked("worker", given["worker_id"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        if given["max_rss"] is not None and memory.resident() is None:
            raise CommandError("--max-rss: this system does not tell how much memory a process occupies.")
        values = {
            **given,
            "using": database(given["database"]),
            "queues": given["queue"],
            "excluded": given["exclude_queue"],
            "scheduler": given["scheduler"] and not given["batch"],
            "maintenance": given["maintenance"] and not given["batch"],
            "worker_id": self.worker_id(worker_id),
            "health_file": self.own_path(given["health_file"]),
            **{name: spread(given[name]) for name in ("max_tasks", "max_seconds", "max_rss")},
        }
        return Options(**{each.name: values[each.name] for each in fields(Options) if each.name in values})
