"""A block may be left elsewhere than it was entered: generators are closed by whoever has them last."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections

from alkstore_django import locks
from alkstore_django.locks import NamedLock, lock

pytestmark = pytest.mark.django_db(transaction=True)


def holding(mine: NamedLock) -> Iterator[int]:
    with mine:
        yield 1
        yield 2


def test_in_another_thread() -> None:
    generator: Any = holding(lock("l"))
    assert next(generator) == 1 and locks.holder("l") is not None
    closing = threading.Thread(target=_closed, args=[generator.close])
    closing.start()
    closing.join(30)
    assert locks.holder("l") is None


def test_in_another_task() -> None:
    """As an event loop does with a generator that is not read to its end."""

    async def rows() -> Any:
        async with lock("l", renew=True):
            yield 1
            yield 2

    async def scenario() -> None:
        generator = rows()
        async for _ in generator:
            break
        assert await locks.aholder("l") is not None
        await asyncio.create_task(generator.aclose())
        assert await locks.aholder("l") is None

    async_to_sync(scenario)()


def test_several_are_not_mixed_up() -> None:
    """Two threads are inside, and a third one leaves: nobody knows which of them it means."""
    mine, leave = lock("l", owner="me"), threading.Event()
    generators: list[Any] = [holding(mine) for _ in range(2)]
    entered = threading.Barrier(3)

    def enter(generator: Any) -> None:
        next(generator)
        entered.wait(30)
        assert leave.wait(30)
        generator.close()

    threads = [threading.Thread(target=_closed, args=[enter, each]) for each in generators]
    for thread in threads:
        thread.start()
    entered.wait(30)
    with pytest.raises(RuntimeError, match="entered in several other threads or tasks"):
        mine.__exit__(None, None, None)
    leave.set()
    for thread in threads:
        thread.join(30)
    assert locks.holder("l") is None


def _closed(work: Any, *arguments: Any) -> None:
    try:
        work(*arguments)
    finally:
        connections.close_all()
