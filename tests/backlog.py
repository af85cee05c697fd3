"""A worker that has more jobs in hand than it runs."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from tests.app import tasks
from tests.processes import Journal, Workers, comes_true
from tests.queue_state import live


class Backlog:
    """One job that runs, and ten that the only worker, with one thread, has claimed with it or will claim.

    A worker takes more jobs than it has threads once it has seen short ones. On a busy machine they may
    not have been short enough: then they are shown again.
    """

    def __init__(self, workers: Workers, journal: Journal, folder: Path) -> None:
        for number in range(20):
            self.gate = folder / f"gate-{number}"
            self.show_short_tasks(workers)
            with transaction.atomic():
                self.running = int(
                    tasks.hold.using(priority=1).enqueue(journal.path, "held", str(self.gate)).id
                )
                self.waiting = {int(tasks.write.enqueue(journal.path, "short").id) for _ in range(10)}
            workers.wait_until(lambda: journal.lines[-1:] == ["start held"], "the job runs")
            if comes_true(lambda: live(state="processing") > 2, 0.5):
                return
            self.gate.touch()
        raise AssertionError("no worker claimed more than it ran")

    def show_short_tasks(self, workers: Workers) -> None:
        with transaction.atomic():
            for _ in range(300):
                tasks.nothing.enqueue()
        workers.wait_until(lambda: not live(), "the short tasks are done")
