"""Outboxes for the tests. They are not imported with the tasks: workers would serve them."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any

from alkstore_django import registry
from alkstore_django.conf import settings
from alkstore_django.exceptions import Discard, TaskInterrupted
from alkstore_django.outbox import outbox
from tests.app.tasks import Boom, wait_for_file, write_line


def forget_unless_served(module: str, *outboxes: Any) -> None:
    """Who only enqueues does not serve them: tests, whose workers serve what is declared."""
    if module not in settings.IMPORTS:
        for each in outboxes:
            del registry._handlers[each.queue_name]


@outbox("lines", base_backoff=0, max_attempts=2)
def write(event: Any) -> object:
    """Append key and number to a file; fail as long as the file ``poison`` says so. What it returns does
    not matter."""
    payload = event.payload
    if (poison := payload.get("poison")) and Path(poison).exists():
        raise Boom(f"poisoned: {event.id}")
    if gate := payload.get("gate"):
        write_line(payload["path"], f"begin {event.key} {payload['n']}")
        wait_for_file(gate)
    write_line(payload["path"], f"{event.key} {payload['n']}")
    return object()


class Writer:
    """Objects with a ``__call__``, and partials, deliver as functions do."""

    def __call__(self, prefix: str, event: Any) -> None:
        write_line(event.payload["path"], f"{prefix}{event.key} {event.payload['n']}")

    async def later(self, prefix: str, event: Any) -> None:
        self(prefix, event)


write_by_partial = outbox("partials", base_backoff=0)(partial(Writer(), ""))
write_by_method = outbox("methods", base_backoff=0)(partial(Writer().later, ""))


@outbox("skipping", base_backoff=0, max_attempts=1, on_dead="skip")
def write_or_skip(event: Any) -> None:
    write.func(event)


@outbox("coroutines")
async def write_later(event: Any) -> None:
    await asyncio.sleep(0)
    write.func(event)


@outbox("heaps", base_backoff=0, max_attempts=3, batch=10, timeout=1)
def write_heap(events: Any) -> None:
    """Append a line for each list, and then do what one of its events says."""
    first = events[0].payload
    numbers = ",".join(str(event.payload["n"]) for event in events)
    write_line(first["path"], f"{numbers} {','.join(str(event.attempt) for event in events)}")
    for event in events:
        match event.payload.get("do"):
            case "fail":
                raise Boom(event.id)
            case "discard":
                raise Discard(event.id)
            case "be long":
                wait_for_file("/nowhere")
            case "be stuck" if event.attempt == 1:
                time.sleep(30)
            case "be interrupted":
                while not all(each.is_cancelled for each in events):
                    time.sleep(0.01)
                raise TaskInterrupted


@outbox("heaps that may last", base_backoff=0, batch=10)
def write_heap_at_ease(events: Any) -> None:
    write_heap.func(events)


@outbox("heaps of coroutines", batch=10)
async def write_heap_later(events: Any) -> None:
    await asyncio.sleep(0)
    write_heap.func(events)


@outbox("describing")
def describe(event: Any) -> None:
    told = [event.id, event.outbox, event.key, event.attempt, event.max_attempts, event.payload["said"]]
    write_line(event.payload["path"], [*told, event.created_at.isoformat(), event.heartbeat()])


forget_unless_served(
    __name__,
    write,
    write_by_partial,
    write_by_method,
    write_or_skip,
    write_later,
    write_heap,
    write_heap_at_ease,
    write_heap_later,
    describe,
)
