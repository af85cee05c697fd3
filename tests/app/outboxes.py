"""Outboxes for the tests. They are not imported with the tasks: workers would serve them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from alkstore_django import registry
from alkstore_django.conf import settings
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


@outbox("skipping", base_backoff=0, max_attempts=1, on_dead="skip")
def write_or_skip(event: Any) -> None:
    write.func(event)


@outbox("coroutines")
async def write_later(event: Any) -> None:
    await asyncio.sleep(0)
    write.func(event)


@outbox("describing")
def describe(event: Any) -> None:
    told = [event.id, event.outbox, event.key, event.attempt, event.max_attempts, event.payload["said"]]
    write_line(event.payload["path"], [*told, event.created_at.isoformat(), event.heartbeat()])


forget_unless_served(__name__, write, write_or_skip, write_later, describe)
