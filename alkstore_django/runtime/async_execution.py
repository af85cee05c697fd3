"""Run one claimed job whose task is a coroutine function."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Sequence
from contextvars import Context, ContextVar
from enum import Enum
from functools import partial
from typing import Any
from weakref import WeakSet

from asgiref.sync import sync_to_async

from alkstore_django import callables, origins
from alkstore_django.exceptions import Discard, Retry, TaskInterrupted, TaskTimedOut
from alkstore_django.tasks import option
from alkstore_django.turns import Outcome

from .execution import Assignment, Execution, logger
from .forks import OneProcess
from .observing import Observation
from .telling import CUT_SHORT
from .timeouts import told
from .watch import Alarm, Watch

CANCELLED = "other code of the event loop has cancelled it"

LOOKS = 10
"""How often the stack of a coroutine is looked at until its own code is in it."""


class Why(Enum):
    """Why a coroutine was cancelled."""

    TIME = "its time is over"
    LOST = "its claim was lost"
    STOP = "the worker stops"


class AsyncObservation(Observation):
    """Signals wait for ``flush``: their sync receivers run in the task's thread, not in the loop's."""

    def __init__(self, claim: Any, history: Sequence[Any]) -> None:
        super().__init__(claim, history)
        self._unsent: list[tuple[Any, BaseException | None, dict[str, Any]]] = []

    async def flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        for signal, error, named in unsent:
            send = sync_to_async(partial(signal.send_robust, **named))
            try:
                if error is None:
                    await send()
                    continue
                try:
                    raise error  # receivers ask ``sys.exc_info()``; it goes along into their thread
                except BaseException:
                    await send()
            except KeyboardInterrupt:
                raise
            except BaseException:
                logger.exception(CUT_SHORT)

    def _dispatch(self, signal: Any, **named: Any) -> None:
        if asyncio._get_running_loop() is None:  # it was given up, and is judged elsewhere
            super()._dispatch(signal, **named)
        else:
            self._unsent.append((signal, sys.exception(), named))


class AsyncExecution(Execution):
    """``context`` is that of the task, ``cancel`` ends it from within the loop's thread."""

    observation: AsyncObservation

    def __init__(self, assignment: Assignment, watch: Watch, context: Context) -> None:
        super().__init__(assignment, watch)
        self.observation = AsyncObservation(assignment.claim, assignment.history)
        self.context = context
        self.why: Why | None = None
        self.is_cancelled_by_others = False
        self.coroutine: asyncio.Task[tuple[Any, BaseException | None]] | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        """Tasks of the loop that the coroutine has begun and that have not ended."""
        self.generators: WeakSet[Any] = WeakSet()
        self.has_returned = False
        self.has_left_something = False
        """Whether something that it has begun goes on after its end."""

    async def arun(self) -> Outcome:
        try:
            self.find()
            self.limit = option(self.task, "timeout")
            self.begin()
            await self.observation.flush()
            if self.task.takes_context and not self.handler and not self.record.is_read:
                await sync_to_async(self.record.read)()
            outcome = self.accept(await self.acall())
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            error = self._of_others(raised)
            outcome = self.judge(error)
            await self.akeep_metadata()
            self.tell_unless_given_up(outcome, error)
        else:
            await self.akeep_metadata()
            self.tell_unless_given_up(outcome)
        await self.observation.flush()
        return outcome

    async def akeep_metadata(self) -> None:
        if not self.record.is_changed:
            self.keep_metadata()  # asks nobody
            return
        try:
            await sync_to_async(self.keep_metadata)()
        except asyncio.CancelledError:
            logger.warning("Job id=%s: its metadata may not be kept: %s", self.claim.id, CANCELLED)

    async def acall(self) -> Any:
        if self.why is not None:
            raise TaskInterrupted(self.why.value)
        loop = asyncio.get_running_loop()
        if self.limit is not None:
            alarm = Alarm(self.limit, lambda: loop.call_soon_threadsafe(self.cancel, Why.TIME), self)
            self.watch.set(alarm)
        self.coroutine = loop.create_task(self._guarded(), context=self.context)
        await self._until_done(self.coroutine)
        if self.limit is not None:
            self.watch.stop(alarm)
        if self.coroutine.cancelled():  # before its first step
            return self._verdict(None, asyncio.CancelledError())
        value, error = self.coroutine.result()
        return self._verdict(value, error)

    async def _until_done(self, coroutine: asyncio.Task[Any]) -> None:
        while not coroutine.done():
            try:
                await asyncio.wait([coroutine])
            except asyncio.CancelledError:  # not by the worker, which cancels the coroutine itself
                self.is_cancelled_by_others = True
                coroutine.cancel()

    def cancel(self, why: Why) -> None:
        if self.why is None and not (self.coroutine and self.coroutine.done()):
            self.why = why
            if self.coroutine is not None:
                self.coroutine.cancel()

    def stack(self) -> str:
        """Of the loop's thread, which it may block, and of the coroutine and what that waits for. Between the
        two looks it may begin to wait, or to go on, and be in neither: then once more."""
        name = callables.name(self.task.func)
        texts = (self._stacks() for _ in range(LOOKS))
        return next((text for text in texts if f", in {name}\n" in text), self._stacks())

    def _stacks(self) -> str:
        text = super().stack()
        waiting: Any = self.coroutine and self.coroutine.get_coro()
        while (frame := getattr(waiting, "cr_frame", None)) is not None:
            text += "".join(traceback.format_stack(frame, limit=1))
            waiting = waiting.cr_await
        return text

    async def _guarded(self) -> tuple[Any, BaseException | None]:
        """No exception leaves it: with ``SystemExit`` or ``KeyboardInterrupt`` the loop itself would end."""
        try:
            with OneProcess(self.claim), origins.restored(self.envelope.extra):
                return await self.task.acall(*self.arguments(), **self.envelope.kwargs), None
        except BaseException as error:
            return None, error

    def _verdict(self, value: Any, error: BaseException | None) -> Any:
        """Return or raise what the task did, or what was done to it."""
        if self.why is Why.TIME and not isinstance(error, Retry | Discard | KeyboardInterrupt):
            raise TaskTimedOut(told(self.limit or 0)) from error
        if self.why is not None and isinstance(error, asyncio.CancelledError):
            raise TaskInterrupted(self.why.value) from error
        if isinstance(error, asyncio.CancelledError) and self._was_cancelled():
            raise Retry(CANCELLED) from error
        if error is not None:
            raise error
        self.has_returned = True
        return value

    def _of_others(self, error: BaseException) -> BaseException:
        """The error, or what it is to count as if others have cancelled even what surrounds the task."""
        this = asyncio.current_task()
        is_theirs = isinstance(error, asyncio.CancelledError) and this is not None and this.cancelling()
        return Retry(CANCELLED) if is_theirs and self.why is None else error

    def _was_cancelled(self) -> bool:
        """From outside, and not by the worker: by a task that cancels all that it finds, say."""
        asked = self.coroutine.cancelling() if self.coroutine is not None else 0
        return self.is_cancelled_by_others or asked > 0


CURRENT: ContextVar[AsyncExecution] = ContextVar("alkstore_execution")
"""The execution that a piece of code of the event loop belongs to."""
