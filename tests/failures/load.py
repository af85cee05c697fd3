"""Four workers, and jobs that come in all the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import Group
from django.db import Error, connection, transaction

from tests.app import atomic, tasks
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, live, lost, succeeded

TROUBLE = "WARNING The database is in trouble"
BACK = "INFO The database is back"


class Load:
    """``workers`` run what ``enqueue`` gives them.

    Most jobs write a line of their own, which may come twice; every fourth is atomic and makes a group,
    whose name can be given only once.
    """

    def __init__(self, started: Workers, journal: Journal) -> None:
        self.workers = started
        self.journal = journal
        self.alkworkers: list[Process] = []
        self.jobs: dict[int, str] = {}
        self.atomic: dict[int, str] = {}

    @contextmanager
    def running(
        self, *arguments: object, count: int = 4, jobs: int = 400, seconds: float = 0.1
    ) -> Iterator[None]:
        """Workers in the middle of ``jobs`` short jobs."""
        self.alkworkers = [self.workers.ready(*arguments) for _ in range(count)]
        self.enqueue(jobs, seconds)
        self.workers.wait_until(lambda: len(self.journal.lines) >= jobs // 10, "all is busy")
        yield

    def enqueue(self, count: int, seconds: float = 0.02) -> None:
        with transaction.atomic():
            for number in range(count):
                name = f"job-{len(self.jobs)}-{len(self.atomic)}"
                if number % 4:
                    self.jobs[int(tasks.write.enqueue(self.journal.path, name, seconds).id)] = name
                else:
                    job_id = int(atomic.make_group_whatever_happens.enqueue(name, seconds).id)
                    self.atomic[job_id] = name

    @property
    def is_done(self) -> bool:
        return not live()

    def goes_on(self) -> None:
        """The database is there again: so are the workers, in the same processes, with new jobs."""
        reconnect()
        for worker in self.alkworkers:
            assert worker.is_running, worker
        self.enqueue(20)
        self.workers.wait_until(lambda: self.is_done, "everything is done", patience=60)

    def has_survived(self, outages: int | None = None, *, journal_is_older: bool = False) -> None:
        """Every job is done, once where nobody lost its claim; each process has told of each outage once.

        ``outages``: how many each of them has seen; None if that depends.
        """
        reconnect()
        runs = Counter(self.journal.keys)
        assert succeeded() == {*self.jobs, *self.atomic}
        assert sorted(Group.objects.values_list("name", flat=True)) == sorted(self.atomic.values())
        assert not dead()
        missing = set(self.jobs.values()) - set(runs)
        assert not missing
        if not journal_is_older:
            twice = {line for line, times in runs.items() if times > 1}
            assert twice <= {self.jobs.get(job_id) for job_id, _ in lost()}
        for worker in self.alkworkers:
            assert worker.is_running, worker
            worker.wait_for(BACK, worker.count(TROUBLE))
            assert worker.count(" (ERROR|CRITICAL) ") == 0, worker
            if outages is not None:
                assert worker.count(TROUBLE) == outages, worker
            assert worker.stop() == 0, worker


def reconnect() -> None:
    """Let go of a connection of the test's own that may have been cut."""
    try:
        connection.close()
    except Error:
        connection.connection = None
