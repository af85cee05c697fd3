"""Listeners: iterators over the notifications on a channel, for threads and for coroutines."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Self

from asgiref.sync import sync_to_async
from django.db import connections

from alkstore_django.hearing import Heard, Hearing, Message

from .attendant import attend
from .ear import Ear, ears
from .subscriptions import Subscription
from .waiting import PIECE, countdown

SOON = 0.05
"""Seconds at most between two looks of a coroutine in a ``TestCase``."""


class Listener:
    """See ``notifications.listen``."""

    def __init__(self, using: str, channel: str, timeout: float | None, interval: float) -> None:
        self._using = using
        self._timeout = timeout
        self._told = threading.Lock()
        self._told.acquire()
        if is_test_case(using):
            self._source: Own | Shared = Own(using, channel)
            return
        tell = _releaser(self._told)
        self._source = Shared(using, channel, interval, tell)
        try:
            while not self._source.has_begun:
                self._told.acquire(timeout=PIECE)
        except BaseException:
            self._source.close()
            raise
        weakref.finalize(self, self._source.close)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Heard:
        """The next notification. Ends when ``timeout`` has passed without one; asked again, it goes on."""
        left = countdown(self._timeout)
        while not self._source.is_closed:
            if (message := self._source.take()) is not None:
                return Heard.of(message)
            if isinstance(self._source, Own):
                return self._nothing_more()
            _refuse_in_transaction(self._using)
            if left() <= 0:
                raise StopIteration
            self._told.acquire(timeout=max(0.0, min(PIECE, left())))
        raise StopIteration

    def _nothing_more(self) -> Heard:
        """Nobody else writes into the transaction of a ``TestCase``, whose thread is here."""
        if self._timeout is None:
            raise RuntimeError(
                "In a TestCase nothing more can come while the test waits: give listen() a timeout, or use a "
                "TransactionTestCase."
            )
        raise StopIteration

    def close(self) -> None:
        """Hear no more; whoever waits for the next one is told that there is none."""
        self._source.close()
        self._source.leave()
        with suppress(RuntimeError):
            self._told.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class AsyncListener:
    """See ``notifications.alisten``."""

    def __init__(self, using: str, channel: str, timeout: float | None, interval: float) -> None:
        self._using = using
        self._channel = channel
        self._timeout = timeout
        self._interval = interval
        self._source: Own | Shared | None = None
        self._told = asyncio.Event()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._begun().__await__()

    async def __aenter__(self) -> Self:
        return await self._begun()

    async def __aexit__(self, *error: Any) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Heard:
        """As ``Listener``'s. If it is cancelled nothing is lost."""
        source = await self._begin()
        left = countdown(self._timeout)
        while not source.is_closed:
            if isinstance(source, Own):
                message = await sync_to_async(source.take)()
            else:
                self._told.clear()
                message = source.take()
            if message is not None:
                return Heard.of(message)
            if left() <= 0:
                break
            await self._wait(source, left())
        raise StopAsyncIteration

    async def _wait(self, source: Own | Shared, seconds: float) -> None:
        if isinstance(source, Own):
            await asyncio.sleep(min(self._interval, SOON, seconds))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, threading.TIMEOUT_MAX)):
                await self._told.wait()

    async def _begun(self) -> Self:
        await self._begin()
        return self

    async def _begin(self) -> Own | Shared:
        """Once."""
        if self._source is not None:
            return self._source
        if await sync_to_async(is_test_case)(self._using):
            self._source = await sync_to_async(Own)(self._using, self._channel)
            return self._source
        loop, told = asyncio.get_running_loop(), self._told

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(told.set)

        source = Shared(self._using, self._channel, self._interval, tell)
        try:
            while not source.has_begun:
                await told.wait()
                told.clear()
        except BaseException:
            source.close()
            raise
        self._source = source
        weakref.finalize(self, source.close)
        return source

    async def aclose(self) -> None:
        """Hear no more."""
        if self._source is not None:
            self._source.close()
            self._told.set()


class Shared:
    """What the ear of this process brings."""

    def __init__(self, using: str, channel: str, interval: float, tell: Callable[[], object]) -> None:
        self.is_closed = False
        self._subscription = Subscription(channel, interval, tell)
        self._ear = attend(ears, Ear, using, self._subscription)

    @property
    def has_begun(self) -> bool:
        """Raises what keeps it from beginning."""
        if self._subscription.trouble is not None:
            raise self._subscription.trouble
        return self._subscription.has_begun

    def take(self) -> Message | None:
        """What has come. Raises what ended it, once everything before that was taken."""
        message = self._subscription.take()
        if message is None and self._subscription.trouble is not None:
            self.close()
            raise self._subscription.trouble
        if message is None and not self._ear.is_here:
            raise RuntimeError("This listener is of the process that has forked: begin another one here.")
        if self._subscription.wants_more:
            self._ear.knock()
        return message

    def close(self) -> None:
        self.is_closed = True
        self._ear.remove(self._subscription)

    def leave(self) -> None:
        self._ear.leave()


class Own:
    """What can be seen in the transaction of a ``TestCase``."""

    def __init__(self, using: str, channel: str) -> None:
        self.is_closed = False
        self._channel = channel
        self._hearing = Hearing(using, alone=True)
        self._hearing.begin()
        self._messages: deque[Message] = deque()

    def take(self) -> Message | None:
        is_more = not self._messages
        while is_more:
            messages, is_more = self._hearing.look([self._channel])
            self._messages.extend(messages)
        return self._messages.popleft() if self._messages else None

    def close(self) -> None:
        self.is_closed = True

    def leave(self) -> None:
        """Nobody else serves it."""


def is_test_case(using: str) -> bool:
    """Whether a ``TestCase`` will roll back all that is written: nobody else can hear of it."""
    blocks: list[Any] = connections[using].atomic_blocks
    return bool(blocks) and bool(getattr(blocks[0], "_from_testcase", False))


def _refuse_in_transaction(using: str) -> None:
    """What it waits for may be an answer to what this transaction has notified, which nobody hears before
    the commit; and on SQLite it may keep everybody from notifying."""
    if connections[using].in_atomic_block:
        raise RuntimeError(
            f"Waiting for notifications in a transaction of database {using!r} could last for ever: listen "
            "outside of atomic() and ATOMIC_REQUESTS."
        )


def _releaser(told: threading.Lock) -> Callable[[], None]:
    def release() -> None:
        with suppress(RuntimeError):  # it was told already
            told.release()

    return release
