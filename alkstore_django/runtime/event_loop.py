"""The event loop that runs coroutine tasks, in a thread of its own."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Set
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any

from alkstore_django.logs import get_logger
from alkstore_django.turns import Outcome, Verdict

from .async_execution import CURRENT, AsyncExecution, Why
from .async_surroundings import AsyncSurroundings, TidyExecutor
from .attempts import crashed, ended_badly, prepared
from .execution import Assignment
from .pools import Pool
from .watch import Watch

logger = get_logger("alkstore_django.worker")

PARTING = 1.0
"""Seconds that cancelled coroutines have to end before the worker does."""


class EventLoop(Pool):
    """Runs up to ``size`` coroutines at the same time, each in a fresh context.

    It starts with its first assignment. ``finished`` gets the outcomes; ``interrupted`` is called when a
    coroutine wants the process to end.
    """

    def __init__(
        self,
        size: int,
        watch: Watch,
        finished: Callable[[Outcome], None],
        interrupted: Callable[[], None],
    ) -> None:
        super().__init__(size)
        self._watch = watch
        self._finished = finished
        self._interrupted = interrupted
        self._loop: Any = None
        self._thread: threading.Thread | None = None
        self._threads = TidyExecutor()
        self._closed = False
        self._has_left_something = False
        self._attempts: set[asyncio.Task[None]] = set()
        self._executions: dict[tuple[int, int], AsyncExecution] = {}

    def cancel(self, keys: Set[tuple[int, int]], why: Why) -> None:
        """Cancel the coroutines of these claims, as far as they run."""
        if keys and self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel, keys, why)

    def close(self) -> None:
        """End. What has been cancelled has a second for it."""
        deadline = time.monotonic() + PARTING
        with self._ready:
            while self._running and (left := deadline - time.monotonic()) > 0:
                self._ready.wait(left)
            self._closed = True
            is_busy = bool(self._running)
        if self._thread is not None and not is_busy:
            with suppress(RuntimeError):  # closed
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=1)

    @property
    def has_left_something(self) -> bool:
        """Whether something goes on that coroutines have begun, and would hold up the end of Python."""
        return self._has_left_something or self._threads.is_busy

    # -- in the loop's thread ---------------------------------------------------------------------

    def _fill(self) -> None:
        while True:
            with self._ready:
                if self._closed or len(self._running) >= self.size or (assignment := self._begin()) is None:
                    return
            context = Context()
            attempt = self._loop.create_task(self._run(assignment, context), context=context)
            self._attempts.add(attempt)
            attempt.add_done_callback(partial(self._done, assignment))

    async def _run(self, assignment: Assignment, context: Context) -> None:
        try:
            outcome = await self._execute(assignment, context)
        except KeyboardInterrupt:
            self._interrupted()
            outcome = Outcome(assignment.claim, Verdict.INTERRUPT)
        self._report(assignment, outcome)

    def _done(self, assignment: Assignment, attempt: asyncio.Task[None]) -> None:
        """It has reported, unless a task that cancels all that it finds has cancelled it before it began."""
        self._attempts.discard(attempt)
        if self._running.get(assignment.claim.id) is assignment:
            error = None if attempt.cancelled() else attempt.exception()
            self._report(assignment, crashed(assignment.claim, "", error or asyncio.CancelledError()))

    def _report(self, assignment: Assignment, outcome: Outcome) -> None:
        self.forget(assignment)
        self._finished(outcome)
        self._fill()

    async def _execute(self, assignment: Assignment, context: Context) -> Outcome:
        claim = assignment.claim
        execution = prepared(claim, lambda: AsyncExecution(assignment, self._watch, context))
        if isinstance(execution, Outcome):
            return execution
        CURRENT.set(execution)
        self._executions[assignment.claim.key] = execution
        outcome = None
        try:
            async with AsyncSurroundings(execution):
                outcome = await execution.arun()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return ended_badly(claim, execution.envelope.task, error, outcome)
        finally:
            del self._executions[assignment.claim.key]
            self._has_left_something |= execution.has_left_something
        return outcome

    def _cancel(self, keys: Set[tuple[int, int]], why: Why) -> None:
        for key in keys:
            if (execution := self._executions.get(key)) is not None:
                execution.cancel(why)

    # -- the thread -------------------------------------------------------------------------------

    def _notify(self, n: int) -> None:
        if self._thread is None:
            self._loop = self._loop or asyncio.new_event_loop()
            thread = threading.Thread(target=self._serve, name="alkworker-loop", daemon=True)
            thread.start()
            self._thread = thread
        self._loop.call_soon_threadsafe(self._fill)

    def forget(self, assignment: Assignment) -> None:
        with self._ready:
            super().forget(assignment)
            self._ready.notify_all()

    def _serve(self) -> None:
        loop = self._loop
        loop.set_default_executor(self._threads)
        loop.set_task_factory(_create_task)
        try:
            while not self._closed:
                loop.call_soon(_note_generators)
                try:
                    loop.run_forever()
                except (SystemExit, KeyboardInterrupt) as error:
                    # From a callback or an asyncio task that a coroutine has begun, and not from itself.
                    logger.error("Something in the event loop wanted to exit; it goes on.", exc_info=error)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            loop.close()


def _create_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    """The loop's task factory: whatever a coroutine begins belongs to its execution."""
    task = asyncio.Task(coro, loop=loop, **options)
    context = options.get("context")
    execution = CURRENT.get(None) if context is None else context.get(CURRENT)
    if execution is not None:
        execution.tasks.add(task)
        task.add_done_callback(execution.tasks.discard)
    return task


def _note_generators() -> None:
    """Add to the loop's own hooks, which it sets whenever it begins to run."""
    first, finalizer = sys.get_asyncgen_hooks()

    def begun(generator: Any) -> None:
        if first is not None:
            first(generator)
        if (execution := CURRENT.get(None)) is not None:
            execution.generators.add(generator)

    sys.set_asyncgen_hooks(firstiter=begun, finalizer=finalizer)
