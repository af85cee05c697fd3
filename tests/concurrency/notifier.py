"""Notify from many processes: ``python -m tests.concurrency.notifier PROCESSES N``.

Each in transactions that last a while, with several notifications, savepoints, and a rollback now and then.
The ids that were committed are printed as one line of JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import time
from multiprocessing.connection import wait
from typing import Any

import django

django.setup()

from django.db import connection, transaction  # noqa: E402

from alkstore_django.notifications import notify, notify_many  # noqa: E402


def work(seed: int, n: int, results: Any) -> None:
    connection.close()
    choose = random.Random(seed)
    kept: list[int] = []
    while n > 0:
        made: list[int] = []
        with transaction.atomic():
            for _ in range(choose.randint(1, 4)):
                with transaction.atomic():
                    found = notify_many("races", [seed] * choose.randint(1, 3)) + [notify("races", seed)]
                    undone = choose.random() < 0.2
                    transaction.set_rollback(undone)
                made += [] if undone else found
            time.sleep(choose.random() * 0.02)
            undone = choose.random() < 0.2
            transaction.set_rollback(undone)
        kept += [] if undone else made
        n -= len(made)
    results.send(kept)


def main(processes: str, n: str) -> None:
    pipes = []
    for seed in range(int(processes)):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.Process(target=work, args=(seed, int(n), theirs)).start()
        theirs.close()
        pipes.append(ours)
    kept: list[int] = []
    while pipes:
        for pipe in wait(pipes):
            kept += pipe.recv()  # type: ignore[union-attr]
            pipes.remove(pipe)  # type: ignore[arg-type]
    print(json.dumps(kept))


if __name__ == "__main__":
    main(*sys.argv[1:])
