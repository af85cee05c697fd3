"""Coroutine tasks for the tests."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction

from alkstore_django.tasks import task
from tests.app.tasks import Boom, wait_for_file, write_line


async def until_there(path: str) -> None:
    while not Path(path).exists():
        await asyncio.sleep(0.01)


@task
async def hold(path: str, line: str, gate: str) -> None:
    """Append ``start <line>``, wait until the file ``gate`` is there, append ``end <line>``."""
    write_line(path, f"start {line}")
    try:
        await until_there(gate)
    except asyncio.CancelledError:
        write_line(path, f"cancelled {line}")
        raise
    write_line(path, f"end {line}")


@task(queue_name="coroutines")
async def hold_in_a_queue_of_coroutines(path: str, line: str, gate: str) -> None:
    await hold.func(path, line, gate)


@task
async def hold_in_a_query(path: str, line: str, gate: str) -> None:
    """Sync code of one task that lasts, in the thread in which its queries run."""
    write_line(path, f"start {line}")
    await sync_to_async(wait_for_file)(gate)
    write_line(path, f"end {line}")


@task
async def block(path: str, line: str, gate: str) -> None:
    """Block the event loop."""
    write_line(path, f"start {line}")
    wait_for_file(gate)
    write_line(path, f"end {line}")


@task
async def count_groups(path: str, line: str) -> int:
    count = await Group.objects.acount()
    write_line(path, line)
    return count


def session() -> Any:
    """The number of the session that the calling thread has with the database."""
    asked = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT connection_id()"}
    with connection.cursor() as cursor:
        cursor.execute(asked.get(connection.vendor, "SELECT 1"))
        return cursor.fetchone()[0]


@task
async def use_every_thread(path: str, line: str) -> int:
    """Sessions in each kind of thread that a coroutine can use; how many of them are different."""
    found = {
        await sync_to_async(session)(),
        await asyncio.to_thread(session),
        await sync_to_async(session, thread_sensitive=False)(),
    }
    write_line(path, line)
    return len(found)


def _begin_and_create(name: str) -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name=name)


@task
async def leave_a_transaction(name: str) -> None:
    await sync_to_async(_begin_and_create)(name)


@task
async def leave(code: int) -> None:
    sys.exit(code)


@task
async def interrupt(path: str) -> None:
    write_line(path, "run")
    raise KeyboardInterrupt


@task(backoff=0, max_attempts=2)
async def fail(message: str = "boom") -> None:
    raise Boom(message)


@task
async def exit_in_another(path: str) -> None:
    """Something that the coroutine begins, and not itself, wants to exit."""

    async def other() -> None:
        sys.exit(3)

    task = asyncio.ensure_future(other())
    await asyncio.wait([task])
    write_line(path, "survived")


async def _sleep_for_ever(path: str) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        write_line(path, "ended what was left")


@task
async def leave_a_task(path: str) -> None:
    asyncio.ensure_future(_sleep_for_ever(path))
    await asyncio.sleep(0)


kept: list[Any] = []


async def _numbers(path: str) -> AsyncIterator[int]:
    try:
        for number in range(10):
            yield number
    finally:
        write_line(path, "closed the generator")


@task
async def leave_a_generator(path: str) -> int:
    numbers = _numbers(path)
    kept.append(numbers)
    return await anext(numbers)


@task(max_attempts=1)
async def fail_in_a_generator(path: str) -> None:
    async for _ in _numbers(path):
        raise Boom("in the middle")


@task
async def break_off_a_generator(path: str) -> None:
    async for _ in _numbers(path):
        break


@task
async def leave_a_task_with_a_generator(path: str) -> None:
    async def read() -> None:
        async for _ in _numbers(path):
            await asyncio.sleep(3600)

    kept.append(asyncio.ensure_future(read()))
    await asyncio.sleep(0)


@task
async def leave_a_thread_busy(path: str) -> None:
    """Cancelled, ``to_thread`` ends; its thread does not."""
    write_line(path, "start")
    call = asyncio.create_task(asyncio.to_thread(time.sleep, 3600))
    await asyncio.sleep(0.05)
    call.cancel()


@task
async def leave_the_stubborn(path: str) -> None:
    """A task of the loop that does not end when it is cancelled."""

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                write_line(path, "swallowed")

    kept.append(asyncio.ensure_future(stubborn()))
    await asyncio.sleep(0)


@task
async def list_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate())
