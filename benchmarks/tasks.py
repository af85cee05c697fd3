"""Tasks that cost nothing but what is around them, and one that keeps a processor busy."""

from __future__ import annotations

import time

from alkstore_django.tasks import task


@task
def nothing() -> None:
    pass


@task(store_result=False)
def nothing_kept() -> None:
    pass


STAMPS: list[tuple[int, float]] = []


@task
def stamp(number: int) -> None:
    """When this line is reached, by the clock that all processes of a machine share."""
    STAMPS.append((number, time.monotonic()))


@task
def busy() -> None:
    """Five milliseconds of pure Python."""
    deadline = time.thread_time() + 0.005
    while time.thread_time() < deadline:
        pass
