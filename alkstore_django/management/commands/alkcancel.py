"""``manage.py alkcancel``: cancel jobs, by id or by what they are."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from alkstore_django.cancellation import cancel_many
from alkstore_django.finding import RUNNING, WAITING, JobFilter, LiveJob, find
from alkstore_django.inspection import get_job
from alkstore_django.management.database import DatabaseCommand, answering, database
from alkstore_django.management.flags import job_id
from alkstore_django.models import Job

ENDED = {
    "dead": "it is a dead letter",
    "succeeded": "it has succeeded",
    "failed": "it has failed",
    "cancelled": "it was cancelled before",
}


class Command(DatabaseCommand):
    help = (
        "Cancels jobs that wait or run: those with the given ids, or all that the options mean. The exit "
        "code is 1 if a job of a given id was not cancelled."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("ids", nargs="*", type=job_id, metavar="ID", help="The id of a job, as result.id.")
        add("--queue", action="append", default=[], metavar="NAME", help="Of this queue; repeat for more.")
        add("--task", action="append", default=[], metavar="NAME", help="Of this task; repeat for more.")
        add("--state", choices=(WAITING, RUNNING), help="Only jobs that wait (or are delayed), or that run.")
        add("--dry-run", action="store_true", help="Only tell which jobs are meant.")
        add("--noinput", "--no-input", action="store_true", help="Do not ask before jobs are cancelled.")
        add("--database", help="Alias of the database. Default: the one that TASKS names.")
        add("--json", action="store_true", help="Print one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        using, ids = database(options["database"]), options["ids"]
        wanted = JobFilter(options["queue"], options["task"], options["state"])
        if not ids and not wanted:
            raise CommandError("Say which jobs: by their ids, or with --queue, --task or --state.")
        asks = not (ids or options["noinput"] or options["dry_run"])
        if options["json"] and asks:
            raise CommandError("--json without ids needs --dry-run or --noinput: it cannot ask.")
        with answering(using):
            found = list(find(using, wanted, ids))
            if not (ids or options["json"]):
                self.count(found)
            if asks and found and not self.is_sure(len(found)):
                self.stdout.write("Nothing was cancelled.")
                return
            meant = list(dict.fromkeys(ids)) or [job.id for job in found]
            cancelled = [] if options["dry_run"] else cancel_many(using, meant, wanted.matches)
            done = found if options["dry_run"] else [LiveJob.of(claim) for claim in cancelled]
            others = sorted(set(ids or meant) - {job.id for job in done})
            left = {each: reason(using, each, wanted) for each in others}
        if options["json"]:
            self.stdout.write(json.dumps(document(using, done, left, **options), indent=2))
        elif ids:
            self.tell_each(done, left, "would be" if options["dry_run"] else "is")
        elif found and not options["dry_run"]:
            self.stdout.write(f"{jobs(len(done))} cancelled{f', {len(left)} not any more' if left else ''}.")
        if ids and left:
            raise CommandError(f"{jobs(len(left))} of {len(ids)} not cancelled.")

    def count(self, found: Sequence[LiveJob]) -> None:
        """How many there are, by queue, task and state."""
        if not found:
            self.stdout.write("No job matches.")
        counts = Counter((job.queue, job.task or "(no task)", job.state) for job in found)
        for (queue, task, state), count in sorted(counts.items()):
            self.stdout.write(f"{queue}  {task}  {count} {state}")

    def is_sure(self, count: int) -> bool:
        try:
            return input(f"Cancel {jobs(count)}? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            raise CommandError("Nobody can be asked here: give --noinput to cancel them.") from None

    def tell_each(self, done: Sequence[LiveJob], left: dict[int, str], verb: str) -> None:
        for job in done:
            while_running = ", while it runs" if job.state == RUNNING else ""
            self.stdout.write(f"Job {job.id} of queue {job.queue} {verb} cancelled{while_running}.")
        for each, why in left.items():
            self.stdout.write(f"Job {each} {verb} not cancelled: {why}.")


def document(using: str, done: Sequence[LiveJob], left: dict[int, str], **options: Any) -> dict[str, Any]:
    return {
        "database": using,
        "dry_run": options["dry_run"],
        "cancelled": [] if options["dry_run"] else [asdict(job) for job in done],
        "would_be_cancelled": [asdict(job) for job in done] if options["dry_run"] else [],
        "not_cancelled": [{"id": each, "reason": why} for each, why in left.items()],
    }


def reason(using: str, each: int, wanted: JobFilter) -> str:
    """Why a job was not cancelled."""
    job = get_job(using, each)
    if job is None:
        return "nothing is known of it"
    if job.state in ENDED:
        return ENDED[job.state]
    if wanted and not list(find(using, wanted, [each])):
        return "it is not what the options mean"
    return "its atomic run cannot be cancelled" if job.state == Job.PROCESSING else "it has just come back"


def jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"
