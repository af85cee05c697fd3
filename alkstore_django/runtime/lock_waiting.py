"""Wait for a named lock: look now and then, and when its holder's time is over; never in a transaction."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from asgiref.sync import sync_to_async

from .waiting import refuse_in_transaction

FIRST, LONGEST = 0.02, 0.5
"""Seconds between two tries: at first, and when it has waited for long. Half as many again each time."""

JITTER = 0.3
"""The share by which they differ, so that those who wait do not come together."""


def until_taken(using: str, attempt: Callable[[bool], Any], seconds: float) -> Any:
    """The first answer of ``attempt`` without a ``left``, or the last one after so many seconds. From the
    second on it shall look before it tries.

    Raises ``RuntimeError`` in a transaction, which could keep the holder from giving back, or never see it.
    """
    refuse_in_transaction(using)
    pauses = _pauses(seconds)
    found = attempt(False)
    while (pause := _pause(found, pauses)) is not None:
        time.sleep(pause)
        found = attempt(True)
    return found


async def auntil_taken(using: str, attempt: Callable[[bool], Awaitable[Any]], seconds: float) -> Any:
    """``until_taken``, awaited."""
    await sync_to_async(refuse_in_transaction)(using)
    pauses = _pauses(seconds)
    found = await attempt(False)
    while (pause := _pause(found, pauses)) is not None:
        await asyncio.sleep(pause)
        found = await attempt(True)
    return found


def _pause(found: Any, pauses: Iterator[float]) -> float | None:
    """How long to sleep before the next try, which is due at the latest when the holder's time is over;
    ``None`` if there is none."""
    left: float | None = getattr(found, "left", None)
    pause = None if left is None else next(pauses, None)
    return pause if left is None or pause is None else min(pause, left)


def _pauses(seconds: float) -> Iterator[float]:
    """Until so many seconds are over."""
    deadline = time.monotonic() + seconds
    pause = FIRST
    while (left := deadline - time.monotonic()) > 0:
        yield min(left, pause * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - no secret
        pause = min(LONGEST, pause * 1.5)
