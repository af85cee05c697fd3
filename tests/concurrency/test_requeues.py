"""``alkrequeue`` as processes: beside each other, interrupted, and with many letters while workers run.

``ALKSTORE_REQUEUE_LETTERS=100000 ALKSTORE_REQUEUE_RATE=5000`` for the real thing; ``-s`` shows the figures.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from alkstore_django.models import Attempt, DeadJob, Job, Run
from alkstore_django.queues import Queue
from alkstore_django.sql import tables
from tests import factories
from tests.processes import Process, Workers, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS = int(os.environ.get("ALKSTORE_REQUEUE_LETTERS", "2000"))
RATE = int(os.environ.get("ALKSTORE_REQUEUE_RATE", "1000"))

TASK = '{"__honker_task__":{"task":"tests.app.tasks.nothing","args":[],"kwargs":{}}}'


def bury(count: int, queue: str = "mail", first: int = 1, error: str = "the gift shop is closed") -> None:
    """Dead letters of ids that follow each other, made by the database: each step doubles them."""
    factories.dead(first, queue, TASK, max_attempts=3, last_error=error)
    names = "queue, payload, attempts, max_attempts, last_error"
    there = 1
    while there < count:
        more = min(there, count - there)
        factories.ask(
            f"INSERT INTO {tables.DEAD} (id, {names}) SELECT id + %s, {names} FROM {tables.DEAD} "
            "WHERE id >= %s AND id < %s",
            [there, first, first + more],
        )
        there += more


def alkrequeue(workers: Workers, *arguments: object) -> Process:
    return workers.start("--noinput", *arguments, command="alkrequeue")


def document(process: Process) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        process.output[process.output.index("{") : process.output.rindex("}") + 1]
    )
    return found


def ids(model: Any) -> set[int]:
    return set(model.objects.values_list("pk", flat=True))


def requeued() -> int:
    """So says the history, which is written with each move."""
    return Attempt.objects.filter(kind=Attempt.REQUEUED).count()


# -- beside each other ----------------------------------------------------------------------------------


def isolated(level: str) -> Any:
    return pytest.param(level, marks=pytest.mark.only("postgresql", "mysql"))


@pytest.mark.parametrize("isolation", ["", isolated("repeatable read"), isolated("serializable")], ids=str)
def test_two_at_once(workers: Workers, isolation: str) -> None:
    """Each letter is moved once, and the counts add up, also beside one that prunes."""
    count, pruned = 1_500, 0
    bury(count)
    workers.environment["ALKSTORE_ISOLATION"] = isolation
    processes = [alkrequeue(workers, "--queue", "mail", "--json", "--rate", 1_500) for _ in range(2)]
    wait_until(lambda: Job.objects.exists(), *processes, what="the first are requeued", patience=120)
    for number in range(count, 1, -100):
        pruned += prune(number)
    for process in processes:
        assert process.join(patience=120) == 0, process
    told = [document(process)["requeued"] for process in processes]
    assert sum(told) == count - pruned == requeued() == Job.objects.count()
    assert not DeadJob.objects.exists()


def prune(number: int) -> int:
    return DeadJob.objects.filter(pk=number).delete()[0]


# -- interrupted ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(workers: Workers, number: signal.Signals) -> None:
    """What was done is done, told and exit code 130; the rest is as it was, and the next run does it."""
    count = 1_000
    bury(count)
    process = alkrequeue(workers, "--all", "--rate", 200)
    wait_until(lambda: Job.objects.count() > 20, process, what="some are requeued", patience=120)
    assert process.stop(number, patience=120) == 128 + number
    done, left = ids(Job), ids(DeadJob)
    assert done | left == set(range(1, count + 1)) and not done & left and left
    assert process.count(f"^{len(done)} dead letters requeued.$") == 1, process
    assert process.count("^CommandError: Interrupted: the others are as they were.$") == 1, process
    assert process.count("Traceback") == 0
    assert requeued() == len(done)
    again = alkrequeue(workers, "--all", "--json")
    assert again.join(patience=120) == 0
    assert document(again)["requeued"] == len(left)


def test_interrupted_before_it_did_anything(workers: Workers) -> None:
    bury(10)
    process = alkrequeue(workers, "--all", "--rate", "1/h", "--limit", 5)
    wait_until(lambda: Job.objects.exists(), process, what="the first is requeued", patience=120)
    assert process.stop(signal.SIGINT, patience=120) == 130
    assert process.count("^1 dead letter requeued.$") == 1, process


def test_in_a_terminal(workers: Workers) -> None:
    """It shows how far it is, and Ctrl-C ends it."""
    bury(1_000)
    line = ("-m", "tests.terminal", "-m", "django", "alkrequeue", "--skip-checks", "--noinput", "--all")
    process = workers.run(*line, "--rate", 200)
    wait_until(lambda: Job.objects.count() > 20, process, what="some are requeued", patience=120)
    process.send(signal.SIGUSR1)
    assert process.join(patience=120) == 130, process
    assert process.count(rf"^.*\b{Job.objects.count()} dead letters requeued") == 1, process


# -- many, while workers run ------------------------------------------------------------------------------


class Watched:
    """A command that requeues: its memory, and how fast it is, from its first batch on."""

    def __init__(self, process: Process) -> None:
        self.samples: list[int] = []
        self._process = process
        self._before = requeued()
        self._began = 0.0

    def until(self, condition: Callable[[], object]) -> None:
        """Look until the condition is true, or the process has ended."""
        while self._process.is_running and not (self._began and condition()):
            looked = time.monotonic()
            if self._began:
                self._sample()
            elif (now := requeued()) > self._before:
                self._before, self._began = now, looked
            time.sleep(0.05)

    def _sample(self) -> None:
        """Kilobytes."""
        with suppress(FileNotFoundError):
            status = Path(f"/proc/{self._process.pid}/status").read_text()
            self.samples += map(int, re.findall(r"VmRSS:\s+(\d+)", status))

    @property
    def seconds(self) -> float:
        """So far, and rather too many."""
        return time.monotonic() - self._began

    def rate(self) -> float:
        return (requeued() - self._before) / self.seconds

    @property
    def growth(self) -> int:
        return max(self.samples, default=0) - min(self.samples[:3], default=0)


@contextmanager
def enqueuing(seconds: float = 0.02) -> Iterator[list[float]]:
    """Somebody who puts in a job now and then; how long each had to wait."""
    waits: list[float] = []
    stop = threading.Event()

    def work() -> None:
        queue = Queue("others")
        while not stop.wait(seconds):
            began = time.monotonic()
            queue.enqueue(1)
            waits.append(time.monotonic() - began)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield waits
    finally:
        stop.set()
        thread.join()


def test_many_while_workers_run(workers: Workers, record_property: Any) -> None:
    """Memory is flat, the rate is kept to, Ctrl-C leaves a consistent state, and the count is true."""
    bury(LETTERS)
    bury(LETTERS // 10, first=10**6, error="another error")
    bury(LETTERS // 10, "pdf", first=2 * 10**6)
    workers.ready("--queue", "mail")
    filters = ("--queue", "mail", "--error", "gift shop", "--rate", f"{RATE}/s")
    first = alkrequeue(workers, *filters)
    with enqueuing() as waits:
        watched = Watched(first)
        watched.until(lambda: requeued() > LETTERS // 2)
        assert first.stop(signal.SIGINT, patience=120) == 130, first
        rate, runs = watched.rate(), Run.objects.count() / watched.seconds
    done = requeued()
    assert first.count(f"^{done} dead letters requeued.$") == 1, first
    assert DeadJob.objects.filter(queue="mail").count() == LETTERS - done + LETTERS // 10
    second = alkrequeue(workers, *filters, "--json")
    watched_again = Watched(second)
    watched_again.until(lambda: False)
    assert second.join(patience=120) == 0, second
    assert document(second)["requeued"] == LETTERS - done
    assert requeued() == LETTERS
    assert DeadJob.objects.count() == 2 * (LETTERS // 10)
    workers.wait_until(lambda: not Job.objects.filter(queue="mail").exists(), "all have run", patience=600)
    assert ids(Run) == set(range(1, LETTERS + 1))
    growth = max(watched.growth, watched_again.growth)
    figures = {
        "letters": LETTERS,
        "interrupted after": done,
        "rate asked for": RATE,
        "rate": round(rate),
        "runs a second meanwhile": round(runs),
        "growth of memory (KB)": growth,
        "longest wait of an enqueue (ms)": round(1000 * max(waits, default=0)),
    }
    for name, value in figures.items():
        record_property(name, value)
        print(f"{name}: {value}")
    assert growth < 16 * 1024
    assert rate < 1.25 * RATE
