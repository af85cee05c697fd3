"""A clean Django around each coroutine task: a thread of its own for sync code, and nothing left behind."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import connections

from alkstore_django.logs import get_logger

from .async_execution import AsyncExecution
from .environment import ENVIRONMENT
from .hygiene import close_connections

logger = get_logger("alkstore_django.worker")

GRACE = 5.0
"""Seconds that what a task left behind has to end, once it was cancelled."""


class AsyncSurroundings:
    """Around one execution, in its context.

    With a ``ThreadSensitiveContext`` the ORM calls of one task do not wait for those of another. What
    its thread has opened is closed there, before the thread ends.
    """

    def __init__(self, execution: AsyncExecution) -> None:
        self._execution = execution
        self._thread: Any = ThreadSensitiveContext()

    async def __aenter__(self) -> None:
        await self._thread.__aenter__()
        ENVIRONMENT.begin(self._execution.envelope.task)

    async def __aexit__(self, *exc_info: object) -> None:
        ENVIRONMENT.end()
        await asyncio.sleep(0)  # generators that nothing refers to are closed by the loop, from now on
        if await self._end_tasks() and await self._end_generators():
            await self._close_connections()
            await self._thread.__aexit__(*exc_info)
        else:  # to leave the context would be to wait for its thread
            self._execution.has_left_something = True

    async def _end_generators(self) -> bool:
        """Whether all have ended, and what they began for that."""
        for generator in list(self._execution.generators):
            if generator.ag_frame is None:
                continue
            if self._execution.has_returned:  # else the exception may be all that refers to it
                self._report("an async generator", generator)
            closing = asyncio.ensure_future(generator.aclose())
            await asyncio.wait([closing], timeout=GRACE)
            if closing.done() and not closing.cancelled() and (error := closing.exception()):
                logger.error("%s: the generator could not be closed.", self._name, exc_info=error)
        return await self._end_tasks()

    async def _end_tasks(self) -> bool:
        """Whether all have ended."""
        deadline = asyncio.get_running_loop().time() + GRACE
        reported: set[Any] = set()
        while left := self._left():
            for task in left:
                if inspect.iscoroutine(task.get_coro()):  # and not the loop's closing of a generator
                    if task not in reported:
                        self._report("an asyncio task", task.get_coro())
                    task.cancel()
            reported |= left
            patience = deadline - asyncio.get_running_loop().time()
            if patience <= 0:
                logger.error("%s: what it left behind goes on although it was cancelled.", self._name)
                return False
            await asyncio.wait(left, timeout=min(patience, 1.0))
        return True

    def _left(self) -> set[asyncio.Task[Any]]:
        return {task for task in self._execution.tasks if not task.done()}

    async def _close_connections(self) -> None:
        if self._thread in SyncToAsync.context_to_thread_executor:  # the task has used it
            await sync_to_async(close_connections)()
        # Those of the loop's own thread; there are none unless DJANGO_ALLOW_ASYNC_UNSAFE is set.
        if any(each.connection is not None for each in connections.all(initialized_only=True)):
            close_connections()

    @property
    def _name(self) -> str:
        claim = self._execution.claim
        return f"Job id={claim.id} queue={claim.queue} task={self._execution.envelope.task}"

    def _report(self, what: str, left: Any) -> None:
        name = getattr(left, "__qualname__", repr(left))
        logger.warning("%s: it left %s behind, which is cancelled: %s", self._name, what, name)


class TidyExecutor(ThreadPoolExecutor):
    """The loop's own threads, for ``to_thread`` and ``sync_to_async(thread_sensitive=False)``: each
    call closes the connections that it has opened."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="alkworker-loop")
        self._calls: set[Future[Any]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether a call goes on: Python waits for it before it exits, whoever has cancelled it."""
        return any(call.running() for call in list(self._calls))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = super().submit(_tidily, fn, *args, **kwargs)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return call


def _tidily(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return fn(*args, **kwargs)
    finally:
        close_connections()
