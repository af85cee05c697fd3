"""Many processes that enqueue unique tasks: ``python -m tests.concurrency.rivals ROLE PROCESSES N``.

All start at once, N calls each. What they were answered is printed as one line of JSON: a list of
``[id, created]`` for each.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from multiprocessing.connection import wait
from typing import Any

import django

django.setup()

from django.db import connection, transaction  # noqa: E402

from tests.contract import tasks  # noqa: E402

KEY = tasks.send.using(unique="the only one", queue_name="rivals")


def enqueue(n: int) -> list[Any]:
    """One key, again and again."""
    return [KEY.enqueue(number) for number in range(n)]


def enqueue_in_transactions(n: int) -> list[Any]:
    """One key, in transactions, of which every other one is rolled back."""
    kept = []
    for number in range(n):
        with transaction.atomic():
            result = KEY.enqueue(number)
            is_kept = number % 2 == 0
            transaction.set_rollback(not is_kept)
        kept += [result] if is_kept or not result.created else []
    return kept


def enqueue_many(n: int) -> list[Any]:
    """Ten keys in bulk, in any order."""
    task = tasks.send.using(unique=True, queue_name="rivals")
    found = []
    for _ in range(n // 10):
        found += task.enqueue_many([(number,) for number in random.sample(range(10), 10)])
    return found


def replace(n: int) -> list[Any]:
    """Every new job takes the place of the last."""
    return [KEY.using(on_conflict="replace").enqueue(number) for number in range(n)]


def rival(role: str, n: int, barrier: Any, answers: Any) -> None:
    connection.ensure_connection()
    barrier.wait(60)
    results = globals()[role](n)
    answers.put([[int(result.id), result.created] for result in results])


def main(role: str, processes: str, n: str) -> None:
    fork = multiprocessing.get_context("fork")  # they are many, and each would load Django by itself
    barrier, answers = fork.Barrier(int(processes)), fork.SimpleQueue()
    rivals = [
        fork.Process(target=rival, args=(role, int(n), barrier, answers)) for _ in range(int(processes))
    ]
    for each in rivals:
        each.start()
    sentinels = {each.sentinel: each for each in rivals}
    found = []
    while len(found) < len(rivals):
        if not answers.empty():
            found.append(answers.get())
            continue
        for sentinel in wait([*sentinels, answers._reader]):
            if sentinel in sentinels and sentinels.pop(sentinel).exitcode:
                sys.exit(1)  # what went wrong is in the output
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
