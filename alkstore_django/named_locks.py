"""``NamedLock``: how a lock is taken and given back, once or around each call of a function."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import sync_to_async
from django.db import Error
from django.utils.module_loading import import_string

from . import callables, held_locks
from .exceptions import LockHeld
from .held_locks import HeldLock
from .logs import get_logger
from .models import Lock, alias
from .models.base import is_in_transaction
from .values import moment

logger = get_logger("alkstore_django.locks")

F = TypeVar("F", bound=Callable[..., Any])

TRIES = 5
"""How often in a row a lock is tried that is somebody else's, and free whenever one looks who has it."""

# What sleeps and has threads lives above, and is found by its name, as a backend is.
WAIT = "alkstore_django.runtime.lock_waiting.until_taken"
AWAIT = "alkstore_django.runtime.lock_waiting.auntil_taken"
KEEP = "alkstore_django.runtime.lock_keeper.keep"


class Busy(NamedTuple):
    """Somebody else has the lock, for so many seconds more at most."""

    refusal: LockHeld
    left: float


class NamedLock:
    """What ``lock`` makes: an acquisition to come, or many. See there."""

    def __init__(
        self, name: str, ttl: int, owner: str | None, wait: float, renew: bool, using: str | None
    ) -> None:
        self.name = name
        self.ttl = ttl
        self.owner = owner
        self.wait = wait
        self.renews = renew
        self._using = using
        self._entered: dict[Any, list[HeldLock]] = {}

    def __repr__(self) -> str:
        return f"<NamedLock {self.name!r}>"

    @property
    def using(self) -> str:
        """The alias of the database."""
        return alias(self._using)

    def acquire(self) -> HeldLock:
        """Take the lock; it holds until it is released, or its time is over. Raises ``LockHeld``, and
        ``RuntimeError`` for a ``wait`` in a transaction."""
        owner = self.owner or _new_owner()
        if not self.wait:
            return _taken(self._try(owner))
        return _taken(import_string(WAIT)(self.using, partial(self._try, owner), self.wait))

    async def aacquire(self) -> HeldLock:
        """``acquire``, awaited: it takes up no thread while it waits."""
        owner = self.owner or _new_owner()
        if not self.wait:
            return _taken(await self._atry(owner))
        return _taken(await import_string(AWAIT)(self.using, partial(self._atry, owner), self.wait))

    def _try(self, owner: str, looks: bool = False) -> HeldLock | Busy:
        """Once, and at once; ``looks`` first, and does not write while somebody else has it."""
        using = self.using
        for _ in range(TRIES):
            found = Lock.objects.db_manager(using).look(self.name) if looks else None
            if found is not None and found[0] != owner:
                return Busy(LockHeld(self.name, found[0], moment(found[1])), found[2])
            taken = held_locks.take(using, self.name, owner, self.ttl, is_new=self.owner is None)
            if taken is not None:
                if self.renews:
                    import_string(KEEP)(taken)
                return taken
            looks = True
        return Busy(LockHeld(self.name), 0.0)

    async def _atry(self, owner: str, looks: bool = False) -> HeldLock | Busy:
        """``_try``, awaited. Whoever is cancelled meanwhile leaves no lock behind that nobody knows of."""
        trying = asyncio.ensure_future(sync_to_async(self._try)(owner, looks))
        try:
            return await asyncio.shield(trying)
        except asyncio.CancelledError:
            while not trying.done():  # its thread cannot be stopped, however often one is cancelled
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({trying})
            if not trying.cancelled() and trying.exception() is None:
                found = trying.result()
                if isinstance(found, HeldLock):
                    await asyncio.shield(sync_to_async(_give_back)(found, has_failed=True))
            raise

    # -- with and async with ------------------------------------------------------------------------

    def __enter__(self) -> HeldLock:
        return self._enter(self.acquire())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _give_back(self._leave(), has_failed=kind is not None)

    async def __aenter__(self) -> HeldLock:
        return self._enter(await self.aacquire())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Shielded: whoever is cancelled once more must not keep the lock.
        await asyncio.shield(sync_to_async(_give_back)(self._leave(), has_failed=kind is not None))

    def _enter(self, taken: HeldLock) -> HeldLock:
        self._entered.setdefault(_here(), []).append(taken)
        return taken

    def _leave(self) -> HeldLock:
        here = _here()
        if here not in self._entered and len(self._entered) == 1:
            here = next(iter(self._entered))  # a generator that is closed elsewhere: there is no other
        entered = self._entered.get(here)
        if not entered:
            raise RuntimeError(
                f"The lock {self.name!r} was left already, or was entered in several other threads or tasks: "
                "use acquire() and release() there."
            )
        taken = entered.pop()
        if not entered:
            del self._entered[here]
        return taken

    # -- decorator ----------------------------------------------------------------------------------

    def __call__(self, function: F) -> F:
        """Take the lock around each call, a new acquisition for each; ``def`` and ``async def``."""
        if not callable(function):
            raise TypeError(f"lock({self.name!r}) decorates a function, not {function!r}.")
        if callables.is_generator(function):
            raise TypeError(
                f"{callables.path(function)} is a generator: the lock would be given back before its first "
                f"step. Write with lock({self.name!r}) inside it."
            )
        if callables.is_coroutine(function):

            @wraps(function)
            async def alocked(*args: Any, **kwargs: Any) -> Any:
                async with self:
                    return await function(*args, **kwargs)

            return alocked  # type: ignore[return-value]

        @wraps(function)
        def locked(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return locked  # type: ignore[return-value]


def _taken(found: HeldLock | Busy) -> HeldLock:
    if isinstance(found, Busy):
        raise found.refusal
    return found


def _give_back(taken: HeldLock, *, has_failed: bool) -> None:
    """At the end of a block. An error of the block, or its success, counts for more than one of the database:
    what cannot be given back ends by itself."""
    try:
        if not taken.release():
            logger.warning("Lock %r of %r was lost before its end.", taken.name, taken.owner)
    except Error as error:
        if not has_failed and is_in_transaction(taken.using):
            raise  # the transaction is broken, and its owner has to know
        logger.warning("Lock %r could not be given back, and ends by itself: %s", taken.name, error)


def _new_owner() -> str:
    """Unique, readable, and shorter than 80 characters."""
    return f"{socket.gethostname()[:32]}-{os.getpid()}-{uuid.uuid4().hex}"


def _here() -> Any:
    """The task, or the thread, that asks."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.get_ident()
