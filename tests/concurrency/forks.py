"""Many processes of one program that begin at the same moment: they are forked, so Django is loaded once."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

from django.db import connection


def run(play: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> None:
    """Call ``play`` with each part in a process of its own, and print the answers as one line of JSON."""
    fork = multiprocessing.get_context("fork")
    barrier, answers = fork.Barrier(len(parts)), fork.SimpleQueue()

    def one(part: tuple[Any, ...]) -> None:
        connection.ensure_connection()
        barrier.wait(60)
        answers.put(play(*part))
        connection.close()

    processes = [fork.Process(target=one, args=(part,)) for part in parts]
    for each in processes:
        each.start()
    sentinels = {each.sentinel: each for each in processes}
    found: list[Any] = []
    while len(found) < len(processes):
        if not answers.empty():
            found.append(answers.get())
            continue
        for sentinel in wait([*sentinels, answers._reader]):  # type: ignore[attr-defined]
            if sentinel in sentinels and sentinels.pop(sentinel).exitcode:
                sys.exit(1)  # what went wrong is in the output
    print(json.dumps(found), flush=True)
