"""``HeldLock``: a named lock in the hands of who has it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from .models import Hold, Lock, LockManager
from .values import seconds


class Pledge:
    """Whether a write holds: one in a transaction of the caller's does until that is rolled back.

    Django tells of commits alone, and keeps what it will tell alive until then: what is gone before was
    rolled back, or its savepoint was. A callback that runs earlier in the same commit sees it as held.
    """

    def __init__(self, using: str) -> None:
        self.is_kept = not connections[using].in_atomic_block
        if self.is_kept:
            return

        def keep() -> None:
            self.is_kept = True

        self._waiting = weakref.ref(keep)
        transaction.on_commit(keep, using=using, robust=True)

    @property
    def is_broken(self) -> bool:
        # Asked last, the flag is set if it ran between the two questions.
        return not self.is_kept and self._waiting() is None and not self.is_kept


class _Written(NamedTuple):
    hold: Hold
    pledge: Pledge


class HeldLock:
    """One acquisition of a lock. Made by ``lock``; safe to use from several threads.

    ``token`` is a number that is larger than that of every acquisition of the same name before: hand it to
    what the lock protects, and let that refuse a smaller one than it has seen.
    """

    def __init__(self, name: str, owner: str, ttl: int, using: str, hold: Hold) -> None:
        self.name = name
        self.owner = owner
        self.ttl = ttl
        self.using = using
        self.token = hold.token
        self._written: tuple[_Written, ...] = (_Written(hold, Pledge(using)),)
        """The last one that has not been rolled back counts."""
        self._is_lost = False
        self._given_back: Pledge | None = None
        self._let_go: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        state = "released" if self.is_released else "lost" if self.lost else f"until {self.expires_at}"
        return f"<HeldLock {self.name!r} by {self.owner!r}, {state}>"

    @property
    def expires_at(self) -> datetime:
        """When it ends without a renewal, in UTC, by the database's clock: at that second it is free."""
        hold = self._hold or self._written[0].hold
        return datetime.fromtimestamp(hold.expires_at, tz=UTC)

    @property
    def seconds_left(self) -> float:
        """For how many seconds more it holds, by the clock of this process; not below 0. Asks nobody."""
        hold = self._hold
        return 0.0 if hold is None else max(0.0, hold.until - time.monotonic())

    @property
    def lost(self) -> bool:
        """Whether it is not ours any more: a renewal was refused, its time is over, or the transaction that
        has taken it was rolled back; after one that has renewed it, it holds as before. Asks nobody.

        ``False`` does not mean that it will be ours a moment later: that is what ``token`` is for. What was
        released in time is not lost.
        """
        return self._is_lost or (not self.is_released and self.seconds_left <= 0)

    @property
    def is_released(self) -> bool:
        """Whether ``release`` was called, and not rolled back."""
        return self._given_back is not None and not self._given_back.is_broken

    def renew(self, ttl: int | float | timedelta | None = None) -> bool:
        """Hold it for ``ttl`` seconds from now, by default as many as before; ``False`` if it is lost.

        A lock whose time is over is not renewed, even if nobody has taken it: acquire it again. Raises
        ``TypeError`` or ``ValueError`` for a bad ``ttl``.
        """
        span = self.ttl if ttl is None else seconds("ttl", ttl, low=1)
        if self._is_lost or self.is_released:
            return False
        hold = _locks(self.using).extend(self.name, self.owner, span)
        if hold is None:
            self._is_lost = not self.is_released  # meanwhile, by another thread
            return False
        written = _Written(hold, Pledge(self.using))
        self._written = (written,) if written.pledge.is_kept else (*self._written, written)
        self.ttl = span
        return True

    def release(self) -> bool:
        """Give it back. ``False`` if there was nothing to give back: it was lost, or released before.

        In a transaction that is rolled back it was not released: it is held as before, and renewed.
        """
        if self.is_released:
            return False
        is_over = self.seconds_left <= 0
        self._given_back = release = Pledge(self.using)
        try:
            if release.is_kept:
                self._let_go()
            was_there = _locks(self.using).release(self.name, self.owner)
        except BaseException:
            self._given_back = None
            raise
        if not release.is_kept:
            transaction.on_commit(lambda: self._let_go(), using=self.using, robust=True)
        self._is_lost = self._is_lost or is_over or not was_there
        return not self._is_lost

    arenew = sync_to_async(renew)
    arelease = sync_to_async(release)

    @property
    def _hold(self) -> Hold | None:
        """``None`` if it was taken in a transaction that was rolled back."""
        for written in reversed(self._written):
            if not written.pledge.is_broken:
                return written.hold
        return None

    # -- for who renews it by itself ----------------------------------------------------------------

    def on_release(self, let_go: Callable[[], object]) -> None:
        """Call it at the release: before the lock is given back, or once that is committed."""
        self._let_go = let_go

    def give_up(self) -> None:
        """It could not be renewed in time."""
        self._is_lost = not self.is_released


def take(using: str, name: str, owner: str, ttl: int, *, is_new: bool) -> HeldLock | None:
    """Take a lock once; ``None`` if somebody else has it. ``is_new``: the owner has no lock yet."""
    hold = _locks(using).take(name, owner, ttl, is_new=is_new)
    return None if hold is None else HeldLock(name, owner, ttl, using, hold)


def _locks(using: str) -> LockManager:
    return Lock.objects.db_manager(using)
