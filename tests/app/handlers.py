"""Handlers for the tests. They are not imported with the tasks: workers would serve their queues."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group

from alkstore_django.exceptions import Discard, Retry
from alkstore_django.queues import handler
from tests.app.tasks import Boom, wait_for_file, write_line


@handler("lines")
def write_payload(payload: Any) -> object:
    """Append the payload to the file that it names; the return value is not looked at."""
    write_line(payload["path"], json.dumps(payload["line"]))
    return object()


@handler("stored", store_result=True, result_ttl=60)
def double(payload: int) -> int:
    return 2 * payload


@handler("unstorable", store_result=True)
def answer_with_an_object(payload: Any) -> object:
    return object()


@handler("contexts", takes_context=True, store_result=True)
def describe(context: Any, payload: Any) -> dict[str, Any]:
    return {
        "id": context.job_id,
        "queue": context.queue,
        "attempt": [context.attempt, context.max_attempts],
        "cancelled": context.is_cancelled,
        "held": context.heartbeat(),
        "payload": payload,
    }


@handler("failing", backoff=0, no_retry=KeyError)
def fail(payload: dict[str, Any]) -> None:
    write_line(payload["path"], "run")
    runs = len(Path(payload["path"]).read_text().splitlines())
    match payload["how"]:
        case "always":
            raise Boom(f"run {runs}")
        case "once" if runs == 1:
            raise Boom("the first")
        case "for good":
            raise KeyError("no retry")
        case "ask again" if runs == 1:
            raise Retry("again", after=0)
        case "discard":
            raise Discard("not worth it")


@handler("coroutines", store_result=True, visibility_timeout=5)
async def meet(payload: dict[str, Any]) -> str:
    """Two of these meet: each waits for the other in one thread."""
    write_line(payload["path"], f"start {payload['name']}")
    while len(Path(payload["path"]).read_text().splitlines()) < 2:
        await asyncio.sleep(0.01)
    group = await Group.objects.acreate(name=payload["name"])
    return group.name


@handler("slow", timeout=0.2)
def too_slow(payload: Any) -> None:
    wait_for_file("never")


@handler("held", visibility_timeout=1)
def hold(payload: dict[str, Any]) -> None:
    write_line(payload["path"], "start")
    wait_for_file(payload["gate"])
    write_line(payload["path"], "end")
