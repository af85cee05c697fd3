"""Notifications: messages to whoever listens on a channel now.

``notify`` is a part of the caller's transaction: what is rolled back is never heard. ``using`` is everywhere
the alias of a database, by default the router's answer for notifications.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from datetime import timedelta
from typing import Any, Protocol, Self

from asgiref.sync import sync_to_async
from django.utils.asyncio import async_unsafe
from django.utils.module_loading import import_string

from .hearing import Heard
from .models import Notification, NotificationManager
from .models.base import in_transaction
from .names import checked
from .payloads import encode
from .values import seconds, span, whole

__all__ = [
    "AsyncListener",
    "Heard",
    "Listener",
    "alisten",
    "anotify",
    "anotify_many",
    "aprune",
    "listen",
    "notify",
    "notify_many",
    "prune",
]

Duration = int | float | timedelta

INTERVAL = 0.25
"""Seconds; see ``listen``."""

# What has a thread lives above, and is found by its name, as a backend is.
LISTENER = "alkstore_django.runtime.listeners.Listener"
ASYNC_LISTENER = "alkstore_django.runtime.listeners.AsyncListener"


class Listener(Protocol):
    """What ``listen`` returns."""

    def __iter__(self) -> Self: ...

    def __next__(self) -> Heard: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...

    def close(self) -> None:
        """Hear no more; whoever waits for the next one is told that there is none."""


class AsyncListener(Protocol):
    """What ``alisten`` returns."""

    def __await__(self) -> Generator[Any, None, Self]: ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Heard: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: Any) -> None: ...

    async def aclose(self) -> None:
        """Hear no more."""


def notify(channel: str, payload: Any = None, *, using: str | None = None) -> int:
    """Tell those who listen on ``channel``, once the transaction is committed; the id of the notification.

    ``payload`` is anything that JSON can hold. Raises ``TypeError`` or ``ValueError``, before any SQL, for
    what it cannot, which names the path to it, and for a bad name: 1 to 191 characters, no control
    characters, no white space at the ends.
    """
    name, text = checked("channel", channel), encode(payload)
    return _manager(using).notify(name, text)


def notify_many(channel: str, payloads: Iterable[Any], *, using: str | None = None) -> list[int]:
    """``notify`` for each payload, all or none, in few statements; the ids in their order."""
    name = checked("channel", channel)
    texts = [encode(payload, f"payloads[{index}]") for index, payload in enumerate(payloads)]
    manager = _manager(using)
    return in_transaction(manager.database, lambda: manager.notify_many(name, texts)) if texts else []


@async_unsafe("It waits in the thread: use notifications.alisten().")
def listen(
    channel: str,
    *,
    using: str | None = None,
    timeout: Duration | None = None,
    interval: Duration = INTERVAL,
) -> Listener:
    """Hear what is notified on ``channel`` from now on: an iterator, and a context manager that closes it.

    Everything whose transaction is committed after this has returned is heard, once, and nothing else;
    by id, but that what commits late comes late. Notifications that are pruned before they were heard are
    lost. Iterate in one thread at a time.

    ``timeout``
        Seconds or a ``timedelta``: the iteration ends when so long none has come. It may be begun again, and
        goes on without loss. Default: it never ends by itself.
    ``interval``
        How often the database is asked at least, where it does not tell: MariaDB, and SQLite about the
        writes of other programs.

    All listeners of a process share one thread and one connection for each database. They outlive
    outages of it. ``next`` raises ``FellBehind`` for a listener that lets 100,000 notifications wait, and
    ``RuntimeError`` if it had to wait in a transaction. ``close()`` ends it. In a ``TestCase`` it hears what
    the test itself notifies, and ends without waiting when there is no more of it.
    """
    listener: Listener = import_string(LISTENER)(*_listening(channel, using, timeout, interval))
    return listener


def alisten(
    channel: str,
    *,
    using: str | None = None,
    timeout: Duration | None = None,
    interval: Duration = INTERVAL,
) -> AsyncListener:
    """``listen`` for coroutines: an asynchronous iterator and context manager, which takes up no thread.

    It hears from when it is entered or awaited on: ``async with alisten("orders") as heard``, or
    ``heard = await alisten("orders")``; else from when it is first asked. ``aclose()`` ends it.
    """
    listener: AsyncListener = import_string(ASYNC_LISTENER)(*_listening(channel, using, timeout, interval))
    return listener


def _listening(
    channel: str,
    using: str | None,
    timeout: Duration | None,
    interval: Duration,
) -> tuple[str, str, float | None, float]:
    """Whatever is stored as a name can be listened to."""
    if not isinstance(channel, str):
        raise TypeError(f"channel must be a string, not {channel!r}.")
    try:
        channel.encode()
    except UnicodeEncodeError:
        raise ValueError(f"No channel has the name {channel!r}.") from None
    if "\0" in channel:
        raise ValueError(f"No channel has the name {channel!r}.")
    limit = None if timeout is None else span("timeout", timeout, low=0)
    return _manager(using).database, channel, limit, span("interval", interval, low=0.001)


def prune(
    *,
    older_than: Duration | None = None,
    max_keep: int | None = None,
    channel: str | None = None,
    using: str | None = None,
) -> int:
    """Delete old notifications; how many. Whoever has not heard them by then never does.

    ``older_than``
        Seconds or a ``timedelta``: those that were put in longer ago, by the database's clock.
    ``max_keep``
        All but so many of the newest, counted when the call begins; 0 deletes all. What comes meanwhile
        stays.
    ``channel``
        Only of this channel, whatever is stored as its name; by default of all, counted together.

    With both, what meets either; with neither, nothing. A thousand at a time, in a transaction each,
    unless the caller has one. Raises ``TypeError`` or ``ValueError`` before any SQL.
    """
    age = None if older_than is None else seconds("older_than", older_than)
    keep = None if max_keep is None else whole("max_keep", max_keep, 0)
    if channel is not None and not isinstance(channel, str):
        raise TypeError(f"channel must be a string, not {channel!r}.")
    if age is None and keep is None:
        return 0
    manager = _manager(using)
    end = manager.newest_id()
    cut = 0 if keep is None else min(end, manager.first_to_lose(keep, channel))
    end = cut if age is None else end
    count = after = 0
    while after < end and (last := manager.last_of_oldest(after, channel=channel)) is not None:
        count += manager.delete_between(after, min(last, end), age=age, cut=cut, channel=channel)
        after = last
    return count


def _manager(using: str | None) -> NotificationManager:
    manager: NotificationManager = Notification.objects
    return manager.db_manager(using)


anotify = sync_to_async(notify)
anotify_many = sync_to_async(notify_many)
aprune = sync_to_async(prune)
