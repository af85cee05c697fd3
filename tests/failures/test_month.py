"""A month of a busy site that nobody has tidied: one worker brings every table to its bound, and jobs go on.

A fiftieth of it, or with ``--full`` all: 500,000 finished jobs, 20,000 dead, 200,000 notifications.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest
from django.db import connection
from django.db.models import Q
from django.test import override_settings

from alkstore_django.models import DeadJob, Job, Lock, Metadata, Notification, RateLimit, Result, Run
from alkstore_django.pruning import count
from alkstore_django.retention import rules
from tests.factories import ask
from tests.failures.homes import Home
from tests.failures.month import DAY, FIRST, Month
from tests.processes import Process, Workers
from tests.queue_state import live

LIMIT = 0.2
"""Seconds that a transaction may take on SQLite."""

BEFORE = 5
"""Seconds of the same work without maintenance, to compare with."""


class Flow(NamedTuple):
    """What an enqueuer has told of some seconds."""

    enqueued: float
    """A second."""
    longest: float

    @classmethod
    def of(cls, lines: list[str]) -> Flow:
        told = [line.split()[1:] for line in lines if line.startswith("enqueued")]
        counts, waits = zip(*((int(count), float(wait)) for count, wait in told), strict=True)
        return cls(sum(counts) / len(counts), max(waits))

    def __str__(self) -> str:
        return f"{self.enqueued:.0f} jobs/s enqueued, the longest INSERT took {self.longest * 1000:.0f} ms"


def trickle(month: Month) -> int:
    """Rows of a kind that may be over at the end: some end in every minute, and no pass is begun for them."""
    return max(20, month.finished // 5_000)


def over() -> dict[str, int]:
    """How much there is of each kind for the maintenance to do."""
    with override_settings(ALKSTORE={"NOTIFICATION_TTL": 7 * DAY}):
        counts = {rule.kind: count("default", rule) for rule in rules()}
    return {kind: number for kind, number in counts.items() if number}


def done(month: Month) -> bool:
    """Whether a job that was not there before has been run."""
    last = FIRST + month.finished + month.dead
    return Run.objects.filter(Q(job_id__lt=FIRST) | Q(job_id__gt=last)).exists()


def deletes(worker: Process) -> tuple[float, float]:
    """The longest of the maintenance's statements: by the clock, and in time of its processor."""
    *_, last = [line for line in worker.lines if line.startswith("longest DELETE")]
    longest, busiest = last.split()[2:]
    return float(longest), float(busiest)


def test_a_month(home: Home, workers: Workers, request: pytest.FixtureRequest) -> None:
    is_full = request.config.getoption("--full")
    month = Month(500_000 if is_full else 10_000)
    rows = month.fill()
    analyze()
    size = size_of(home)
    enqueuer = workers.run("-m", "tests.failures.enqueuer", 0.01)
    plain = workers.start("--no-maintenance", "-v", 0, **home.reached(settings="tests.failures.timed"))
    workers.wait_until(lambda: done(month), "it works", 120)
    begun = len(enqueuer.lines)
    workers.wait_until(lambda: len(enqueuer.lines) > begun + BEFORE, "seconds without it", 120)
    before = Flow.of(enqueuer.lines[begun + 1 :])
    assert plain.stop() == 0
    found = over()
    worker = workers.start("-v", 0, **home.reached(settings="tests.failures.timed"))
    workers.wait_until(lambda: worker.count("longest DELETE"), "it begins", 120)
    started, begun = time.monotonic(), len(enqueuer.lines)
    left, patience = found, 60 + rows / 2_000
    while max((left := over()).values(), default=0) > trickle(month):
        assert time.monotonic() - started < patience, f"left after {patience} s: {left}\n{worker}"
        assert worker.is_running, worker
        time.sleep(1 if is_full else 0.25)
    took = time.monotonic() - started
    workers.wait_until(lambda: len(enqueuer.lines) > begun + 1, "some seconds with it", 60)
    during = Flow.of(enqueuer.lines[begun:])
    enqueuer.reap()
    workers.wait_until(lambda: not live(), "all jobs are done", 120)
    assert worker.stop() == 0
    longest, busiest = deletes(worker)
    print(f"\n{home.vendor}: {sum(found.values()):,} of {rows:,} rows were over: {found}")
    print(f"gone after {took:.1f} s; the longest DELETE took {longest * 1000:.0f} ms", end=", ")
    print(f"{busiest * 1000:.0f} ms of its processor")
    print(f"without it: {before}\nwith it:    {during}")
    print(f"{size:,} bytes before, {size_of(home):,} after, {free(home)}")
    stays(month)
    assert busiest < LIMIT
    if is_full and home.vendor == "sqlite":
        assert longest < LIMIT
        assert during.longest < LIMIT + before.longest


def stays(month: Month) -> None:
    """What is not over is all there, within the time that the test has taken."""
    ours = {"job_id__range": (FIRST, FIRST + month.finished - 1)}
    for model, kept in ((Run, month.finished * 7 // 30), (Result, month.finished * 7 // 30)):
        assert 0.97 * kept <= model._default_manager.filter(**ours).count() <= kept + trickle(month)
    assert 0.97 * month.dead / 2 <= DeadJob.objects.count() <= month.dead / 2 + trickle(month)
    assert 0.97 * month.notifications * 7 // 30 <= Notification.objects.count()
    assert Metadata.objects.count() <= month.finished // 20
    assert Lock.objects.filter(name__startswith="held").count() == 100
    assert RateLimit.objects.count() <= month.windows
    assert not Job.objects.exists()
    assert DeadJob.objects.filter(pk__gte=FIRST).count() == DeadJob.objects.count()


def analyze() -> None:
    """As autovacuum would have in a month; SQLite goes without."""
    if connection.vendor == "postgresql":
        ask("ANALYZE")


def size_of(home: Home) -> int:
    """Bytes on the disk; of a file, after a checkpoint."""
    if home.vendor == "sqlite":
        connection.close()  # a read of its own would keep the checkpoint from its end
        ask("PRAGMA wal_checkpoint(TRUNCATE)")
        return home.path.stat().st_size
    if home.vendor == "postgresql":
        return int(ask("SELECT pg_database_size(current_database())")[0][0])
    return int(
        ask(
            "SELECT SUM(data_length + index_length) FROM information_schema.tables "
            "WHERE table_schema = DATABASE()"
        )[0][0]
    )


def free(home: Home) -> str:
    """What of it new rows can use."""
    if home.vendor != "sqlite":
        return "what is free in it is the server's to say"
    pages, size = ask("PRAGMA freelist_count")[0][0], ask("PRAGMA page_size")[0][0]
    ask("VACUUM")
    return f"{pages * size:,} of them free; {size_of(home):,} after VACUUM"
