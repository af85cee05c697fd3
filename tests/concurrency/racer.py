"""One side of a race, as a process: ``python -m tests.concurrency.racer ROLE DIRECTORY QUEUE [ARGUMENT]``.

It says that it is ready, waits for the file ``go``, plays its role until there is nothing left to do
(or the file ``end`` is there) and prints what it achieved as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import django
from asgiref.sync import sync_to_async
from django.db import connections

django.setup()

from alkstore_django.cancellation import cancel_many  # noqa: E402
from alkstore_django.claims import ClaimedJob  # noqa: E402
from alkstore_django.compat import TaskResultStatus  # noqa: E402
from alkstore_django.pruning import Pass  # noqa: E402
from alkstore_django.queues import Queue  # noqa: E402
from alkstore_django.retention import chosen  # noqa: E402
from tests.app.tasks import write  # noqa: E402

WORKER = f"racer-{os.getpid()}"


class Racer:
    """Roles are methods; each returns the ids for which it was the one that did it."""

    def __init__(self, directory: str, queue: str, argument: str = "") -> None:
        self.directory = Path(directory)
        self.argument = argument
        self.queue = Queue(queue, visibility_timeout=int(argument) if argument.isdigit() else 60)
        self.random = random.Random(os.getpid())

    def until(self, name: str) -> Iterator[None]:
        """Go round until that file is there, and once more."""
        is_last = False
        while not is_last:
            is_last = (self.directory / name).exists()
            yield

    def enqueue(self) -> list[int]:
        """150 jobs, one by one and in bulk, half of them due a second later."""
        ids: list[int] = []
        for number in range(25):
            ids.append(self.queue.enqueue(number, delay=number % 2, priority=number % 3))
            ids += self.queue.enqueue_many(range(5), delay=number % 2)
        return ids

    def claim(self) -> list[int]:
        """Claim and ack in batches of up to 7, until the end."""
        acked: list[int] = []
        for _ in self.until("end"):
            while jobs := self.queue.claim_batch(WORKER, self.random.randint(1, 7)):
                assert self.queue.ack_batch(jobs) == len(jobs)
                acked += [job.id for job in jobs]
            time.sleep(0.01)
        return acked

    def claim_one_by_one(self) -> list[int]:
        acked: list[int] = []
        while job := self.queue.claim_one(WORKER):
            acked += [job.id] * self.queue.ack(job)
        return acked

    def claim_late(self) -> list[int]:
        """Claims of a second: the first is acked too late, the others about when they lapse."""
        acked: list[int] = []
        delay = 1.2
        for _ in self.until("end"):
            jobs = self.queue.claim_batch(WORKER, 10)
            late = max((job.claim_expires_at for job in jobs), default=0) + delay
            while time.time() < late and jobs:
                time.sleep(0.005)
            acked += [job.id for job in jobs if self.queue.ack(job)]
            delay = self.random.uniform(0.6, 1.2)
            time.sleep(0.01)
        return acked

    def cancel(self) -> list[int]:
        ids = [int(text) for text in self.argument.split(",")]
        self.random.shuffle(ids)
        return [job_id for job_id in ids if self.queue.cancel(job_id)]

    def cancel_in_bulk(self) -> list[int]:
        """The same by many at once, as ``alkcancel`` does."""
        ids = [int(text) for text in self.argument.split(",")]
        self.random.shuffle(ids)
        return [claim.id for claim in cancel_many(self.queue.using, ids, lambda claim: claim.id % 3 == 0)]

    def wait(self) -> list[int]:
        """Wait for the ends of all at once; those that succeeded."""

        async def wait() -> list[int]:
            results = [await write.aget_result(text) for text in self.argument.split(",")]
            await asyncio.gather(*(result.await_result(60) for result in results))
            await sync_to_async(connections.close_all)()
            return [int(result.id) for result in results if result.status == TaskResultStatus.SUCCESSFUL]

        return asyncio.run(wait())

    def requeue(self) -> list[int]:
        ids = [int(text) for text in self.argument.split(",")]
        self.random.shuffle(ids)
        requeued: list[int] = []
        for job_id in ids:
            requeued += [job_id] * bool(self.queue.requeue([job_id]))
            time.sleep(0.002)  # an SQLite file is had by whoever asks first: let others ask
        return requeued

    def fail(self) -> list[int]:
        """Claim jobs that are about to expire, and fail them."""
        failed: list[int] = []
        held: list[ClaimedJob] = []
        for _ in self.until("end"):
            held += self.queue.claim_batch(WORKER, 5)
            job = held.pop(self.random.randrange(len(held))) if held else None
            failed += [job.id] * self.queue.fail(job, "failed") if job else []
        return failed + [job.id for job in held if self.queue.fail(job, "failed")]

    def sweep(self) -> list[int]:
        """How many jobs the sweeps moved, as so many zeros: a sweep names none."""
        swept = 0
        for _ in self.until("end"):
            swept += self.queue.sweep_expired()
        return [0] * swept

    def prune(self) -> list[int]:
        """Delete dead letters that are a minute old, and the history of jobs that are gone; so many zeros."""
        deleted = 0
        for _ in self.until("end"):
            rules = chosen(self.queue.using, ["dead", "history"], {"dead": 60})
            steps = Pass(self.queue.using, rules, 2)
            while steps.step():
                time.sleep(0.002)
            deleted += steps.deleted["dead"]
        return [0] * deleted


def main(role: str, directory: str, *arguments: str) -> None:
    racer = Racer(directory, *arguments)
    print("ready", flush=True)
    while not (Path(directory) / "go").exists():
        time.sleep(0.001)
    print(json.dumps(getattr(racer, role)()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
