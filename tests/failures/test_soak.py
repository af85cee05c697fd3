"""A worker among bad tasks for a minute, or as long as ``--soak`` says: what it takes levels off.

The tasks fail, run out of time, and leave transactions, connections and autocommit in any state.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from alkstore_django.models import DeadJob, Job, Result, Run
from tests.app import atomic, coroutines, limits, messes, tasks
from tests.failures.footprint import Footprint, growing
from tests.failures.homes import Home
from tests.processes import Journal, Workers
from tests.queue_state import live

BACKLOG = 40
"""Jobs that wait at most: the machine has something else to do, too."""

STANDSTILL = 15.0
"""Seconds in which no job ends: the longest of them takes three."""


def bad_tasks(path: str) -> Iterator[Callable[[], object]]:
    for number in itertools.count():
        name = f"group {number}"
        yield lambda: tasks.nothing.enqueue()
        yield lambda: tasks.async_add.enqueue(1, 2)
        yield lambda name=name: tasks.async_group.enqueue(name)
        yield lambda name=name: atomic.make_group.enqueue(f"atomic {name}")
        yield lambda: coroutines.count_groups.enqueue(path, "count")
        yield lambda: tasks.fail.enqueue("x" * 2_000)
        yield lambda: tasks.return_unserialisable.enqueue(path)
        yield lambda: tasks.leave.enqueue(3)
        yield lambda name=name: messes.leave_transaction_open.enqueue(f"open {name}")
        yield lambda name=name: messes.leave_transaction_begun_by_hand.enqueue(f"by hand {name}")
        yield lambda name=name: messes.leave_transaction_broken.enqueue(f"broken {name}")
        yield lambda name=name: messes.leave_transaction_closed.enqueue(f"closed {name}")
        yield lambda name=name: messes.leave_autocommit_off.enqueue(f"autocommit {name}")
        yield lambda: messes.leave_driver_closed.enqueue()
        yield lambda: messes.leave_language_and_zone.enqueue()
        if number % 10 == 0:
            yield lambda: limits.overrun_once.enqueue()
            yield lambda: limits.overrun_async.enqueue()
            yield lambda: limits.discard_when_late.enqueue()


def test_what_a_worker_takes_levels_off(
    home: Home, workers: Workers, journal: Journal, request: pytest.FixtureRequest
) -> None:
    seconds = request.config.getoption("--soak")
    worker = workers.start("-v", 0, **home.reached(settings="tests.failures.quiet"))
    bad, samples = bad_tasks(journal.path), []
    started = sampled = moved = time.monotonic()
    ended = 0
    while time.monotonic() - started < seconds:
        if live() < BACKLOG:
            for enqueue in itertools.islice(bad, BACKLOG):
                enqueue()
        if time.monotonic() - sampled > seconds / 60:
            sampled = time.monotonic()
            samples.append(Footprint.of(worker.pid, home))
        before, ended = ended, Run.objects.count() + DeadJob.objects.count()
        moved = time.monotonic() if ended > before else moved
        assert time.monotonic() - moved < STANDSTILL, f"the worker does not get on\n{worker}"
        time.sleep(0.25)
    print(*samples, sep="\n")
    assert worker.is_running, worker
    print(f"{ended} jobs ended, {Job.objects.count()} live, {Result.objects.count()} results")
    assert growing(samples) == []
    workers.wait_until(lambda: not live(), "everything is done")
    assert worker.stop() == 0
