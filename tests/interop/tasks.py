"""Our tasks, two of which are named by their path and the others by us; honker has the same names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from alkstore_django.queues import handler
from alkstore_django.tasks import task
from tests.interop.processes import wait_for


@task
def add(a: int, b: int = 0) -> int:
    return a + b


@task
def show(value: object) -> str:
    return repr(value)


@task(name="shop.send")
def send(to: str, *, subject: str) -> dict[str, Any]:
    return {"by": "us", "to": to, "subject": subject}


@task(name="shop.boom", max_attempts=1)
def boom(reason: str) -> None:
    raise ValueError(reason)


@task(name="shop.hold")
def hold(started: str, released: str) -> str:
    """Says that it runs by making one file, and runs until the other is there."""
    Path(started).touch()
    wait_for(Path(released).exists, "the test to let go")
    return "let go"


@task(name="shop.only_ours")
def only_ours() -> str:
    return "run by us"


@task(name="shop.record")
def record(path: str, number: int, processes: int) -> int:
    """Append who ran it, and go on when so many processes have run one: none is too late to take part."""
    log = Path(path)
    with log.open("a") as file:  # one short line each: the kernel appends it whole
        file.write(f"us {os.getpid()} {number}\n")

    def all_are_here() -> bool:
        return len({line.split()[1] for line in log.read_text().splitlines()}) >= processes

    wait_for(all_are_here, "the other workers")
    return number


@handler("handled", store_result=True)
def handle(payload: dict[str, Any]) -> dict[str, Any]:
    return {"by": "us", "to": payload["to"]}
