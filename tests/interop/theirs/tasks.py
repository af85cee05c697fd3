"""honker's tasks, named like those of ``tests/interop/tasks.py``, as a program of honker's declares them."""

from __future__ import annotations

import os
import time

import honker

database = honker.open(os.environ["HONKER_DATABASE"])
default = database.queue("default")


@default.task(name="tests.interop.tasks.add", retries=4)
def add(a, b=0):
    return a + b


@default.task(name="shop.send", priority=7, expires_s=600)
def send(to, *, subject):
    return {"by": "honker", "to": to, "subject": subject}


@default.task(name="shop.boom", retries=1)
def boom(reason):
    raise ValueError(reason)


@default.task(name="shop.hold")
def hold(started, released):
    """Says that it runs by making one file, and runs until the other is there."""
    open(started, "w").close()
    while not os.path.exists(released):
        time.sleep(0.01)
    return "let go"


@default.task(name="shop.record")
def record(path, number, processes):
    with open(path, "a") as log:
        log.write(f"honker {os.getpid()} {number}\n")
    while len(pids(path)) < processes:
        time.sleep(0.01)
    return number


def pids(path):
    with open(path) as log:
        return {line.split()[1] for line in log}
