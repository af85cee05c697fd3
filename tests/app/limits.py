"""Tasks with a ``timeout``, and what they do when it is over."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from alkstore_django.exceptions import Discard, Retry, TaskTimedOut
from alkstore_django.tasks import task
from tests.app.coroutines import until_there
from tests.app.tasks import wait_for_file, write_line

LIMIT = {"timeout": 0.2, "backoff": 0, "max_attempts": 2}


def spin() -> None:
    """Python code without an end."""
    while True:
        sum(range(100))


@task(**LIMIT)
def overrun() -> None:
    spin()


@task(**LIMIT)
async def overrun_async() -> None:
    await asyncio.sleep(3600)


@task(**LIMIT, no_retry=TaskTimedOut)
def overrun_once() -> None:
    spin()


@task(**LIMIT, retry_on=KeyError)
def overrun_with_another_reason_to_retry() -> None:
    spin()


@task(**LIMIT)
def tidy_up(path: str) -> str:
    """Catch it, do something, and return as if nothing were."""
    try:
        spin()
    except TaskTimedOut:
        write_line(path, "tidied up")
    return "done"


@task(**LIMIT)
async def tidy_up_async(path: str) -> str:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(0.1)
        write_line(path, "tidied up")
    return "done"


@task(**LIMIT)
def fail_differently() -> None:
    try:
        spin()
    except TaskTimedOut:
        raise KeyError("in the middle") from None


@task(**LIMIT)
def discard_when_late() -> None:
    try:
        spin()
    except TaskTimedOut:
        raise Discard("too late") from None


@task(**LIMIT)
async def retry_when_late() -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        raise Retry("too late", after=0) from None


@task(timeout=30)
def in_time(n: int) -> int:
    return n


@task(timeout=30)
async def in_time_async(n: int) -> int:
    return n


@task(timeout=0.02, max_attempts=1)
def nearly(seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sum(range(10))


@task(timeout=0.2, backoff=1000, max_attempts=2)
def stick(path: str, gate: str) -> None:
    """Not to be interrupted."""
    write_line(path, "start stuck")
    while True:
        try:
            wait_for_file(gate)
            return
        except Exception:  # swallows everything
            write_line(path, "swallowed")


@task(timeout=0.2, backoff=1000, max_attempts=2)
def block_in_c(path: str, gate: str) -> None:
    write_line(path, "start stuck")
    time.sleep(3600)


@task(timeout=0.2, backoff=1000, max_attempts=2)
async def stick_async(path: str, gate: str) -> None:
    write_line(path, "start stuck")
    while not Path(gate).exists():
        try:
            await until_there(gate)
        except asyncio.CancelledError:
            write_line(path, "swallowed")


@task(timeout=0.2, backoff=1000, max_attempts=2)
async def block_the_loop(path: str, gate: str) -> None:
    write_line(path, "start stuck")
    time.sleep(3600)
