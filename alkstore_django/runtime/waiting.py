"""Wait until a job has ended: told by a watcher, and never in a transaction."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from .watcher import Waiter, watched

PIECE = 0.5
"""Seconds: to wait is a call into C, which neither a timeout nor a signal interrupts everywhere."""

PATIENCE = 1.0
"""Seconds between two looks of one's own, where there can be no watcher."""


def until(
    using: str,
    job_id: int,
    has_ended: Callable[[], bool],
    seconds: float | None,
    *,
    or_result: bool = False,
) -> None:
    """Return when ``has_ended()``, which looks at the job by the caller's own connection; ``or_result``: it
    may be true as soon as the job has a result.

    Raises ``TimeoutError`` when that was in vain for so long (``None``: for ever), ``RuntimeError`` in a
    transaction, and what ``has_ended`` raises.
    """
    refuse_in_transaction(using)
    left = countdown(seconds)
    while not has_ended():
        _refuse_in_test_case(using)
        if left() <= 0:
            raise _timed_out(job_id, seconds)
        told = threading.Lock()
        told.acquire()
        waiter = Waiter(job_id, told.release, or_result=or_result)
        with watched(using, waiter) as watcher:
            while not told.acquire(timeout=max(0.0, min(PIECE, left()))) and left() > 0:
                pass
        watcher.leave()
        if waiter.is_vain:
            time.sleep(max(0.0, min(PATIENCE, left())))


async def auntil(
    using: str,
    job_id: int,
    has_ended: Callable[[], Awaitable[bool]],
    seconds: float | None,
    *,
    or_result: bool = False,
) -> None:
    """``until``, awaited: no thread waits for each job."""
    await sync_to_async(refuse_in_transaction)(using)
    left = countdown(seconds)
    loop = asyncio.get_running_loop()
    while not await has_ended():
        await sync_to_async(_refuse_in_test_case)(using)
        if left() <= 0:
            raise _timed_out(job_id, seconds)
        told = asyncio.Event()

        def tell(told: asyncio.Event = told) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(told.set)

        waiter = Waiter(job_id, tell, or_result=or_result)
        with watched(using, waiter), suppress(TimeoutError):
            async with asyncio.timeout(None if seconds is None else left()):
                await told.wait()
        if waiter.is_vain:
            await asyncio.sleep(max(0.0, min(PATIENCE, left())))


def countdown(seconds: float | None) -> Callable[[], float]:
    """How many seconds are left."""
    deadline = threading.TIMEOUT_MAX if seconds is None else time.monotonic() + seconds
    return lambda: deadline - time.monotonic()


def _timed_out(job_id: int, seconds: float | None) -> TimeoutError:
    return TimeoutError(f"Job id={job_id} has not ended within {seconds:g} s.")


def refuse_in_transaction(using: str) -> None:
    """It would wait for what it hinders: a job of this transaction is not there before the commit, at
    REPEATABLE READ its end is never seen, and on SQLite no worker could write it."""
    connection = connections[using]
    if connection.in_atomic_block:
        if not _is_of_test_case(connection):
            raise RuntimeError(
                f"Waiting in a transaction of database {using!r} could last for ever: wait after the commit, "
                "outside of atomic() and ATOMIC_REQUESTS."
            )
    elif not connection.get_autocommit():
        raise RuntimeError(f"Waiting needs autocommit, which is off for database {using!r}.")


def _refuse_in_test_case(using: str) -> None:
    """What a ``TestCase`` writes is seen by nobody else: no worker could end a job."""
    if connections[using].in_atomic_block:
        raise RuntimeError(
            "In a TestCase no task ends by itself, since no worker sees it: run the tasks before, or use a "
            "TransactionTestCase."
        )


def _is_of_test_case(connection: Any) -> bool:
    """As Django judges ``atomic(durable=True)``."""
    return bool(connection.atomic_blocks[-1]._from_testcase)
