"""Those who listen, and the ear that hears for them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from asgiref.sync import async_to_sync
from django.db import connections

from alkstore_django.models import NotificationManager
from alkstore_django.notifications import notify
from alkstore_django.runtime import ear
from tests.processes import wait_until

T = TypeVar("T")
QUIET = 0.2
"""Seconds for which a test waits for what must not come."""

PATIENCE = 60
"""Seconds for which it waits for what must."""


def ears() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("alkstore-ear")]


@pytest.fixture
def no_ear_stays() -> Iterator[None]:
    yield
    wait_until(lambda: gc.collect() >= 0 and ears() == [], what="nobody listens any more")


def take(count: int, heard: Any) -> list[Any]:
    """The payloads of the next ones."""
    return [next(heard).payload for _ in range(count)]


def rest(heard: Any, channel: str = "a", using: str = "default") -> list[Any]:
    """The payloads of what has been notified so far."""
    end = notify(channel, "end", using=using)
    found: list[Any] = []
    for each in heard:
        if each.id == end:
            return found
        found.append(each.payload)
    raise AssertionError(f"the last one is not heard, but {found}")


def left(heard: Any) -> list[Any]:
    """The payloads of what comes until nothing comes for the timeout of the listener."""
    return [each.payload for each in heard]


def in_a_thread(act: Callable[[], T]) -> T:
    found: list[T] = []

    def work() -> None:
        try:
            found.append(act())
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def run(act: Callable[[], Awaitable[T]]) -> T:
    async def outer() -> T:
        return await act()

    return async_to_sync(outer)()


def begun(using: str = "default") -> int:
    """How many hear."""
    found = ear.ears.get(using)
    return 0 if found is None else sum(guest.has_begun for guest in list(found._guests.values()))


@contextmanager
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows each look found."""
    counts: list[int] = []
    after = NotificationManager.after

    def counted(self: Any, *args: Any) -> Any:
        found = after(self, *args)
        counts.append(len(found))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(NotificationManager, "after", counted)
        yield counts
