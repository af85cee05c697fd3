"""Tasks that use what their context knows."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from alkstore_django.exceptions import TaskInterrupted
from alkstore_django.tasks import task
from tests.app.tasks import wait_for_file, write_line


@task(takes_context=True)
def tell(context: Any) -> list[Any]:
    return [context.job_id, context.attempt, context.is_cancelled, context.heartbeat()]


@task(takes_context=True)
async def tell_async(context: Any) -> list[Any]:
    return [context.job_id, context.attempt, context.is_cancelled, await context.aheartbeat(60)]


def until_cancelled(context: Any) -> None:
    deadline = time.monotonic() + 60
    while not context.is_cancelled:
        if time.monotonic() > deadline:
            raise TimeoutError("nobody cancelled it")
        time.sleep(0.01)


@task(takes_context=True)
def watch_out(context: Any, path: str) -> str:
    """Work until it is cancelled; say so, and whether its claim is held."""
    write_line(path, "start")
    until_cancelled(context)
    write_line(path, f"cancelled, held: {context.heartbeat()}")
    return "done"


@task(takes_context=True, max_attempts=1)
def leave_when_cancelled(context: Any, path: str) -> None:
    write_line(path, "start")
    until_cancelled(context)
    raise TaskInterrupted("to be continued")


@task
def leave_for_no_reason() -> None:
    raise TaskInterrupted("nobody asked")


@task
async def wait_for_cancellation(path: str) -> None:
    write_line(path, "start")
    try:
        await asyncio.sleep(60)
    finally:
        write_line(path, "cancelled")


@task(takes_context=True)
def hold_long(context: Any, path: str, gate: str) -> bool:
    """Ask for a long claim, within a transaction that holds no lock on the job but may be the only writer."""
    with transaction.atomic():
        Group.objects.create(name="in between")
        held = bool(context.heartbeat(1000))
    write_line(path, f"held: {held}")
    wait_for_file(gate)
    return bool(context.heartbeat(1000))


@task(takes_context=True)
async def heartbeat_in_the_loop(context: Any) -> None:
    context.heartbeat()


@task(takes_context=True, max_attempts=1)
def heartbeat_badly(context: Any, extend: Any) -> None:
    context.heartbeat(extend)


@task(takes_context=True, backoff=0)
def boundary(context: Any, path: str, failures: int = 0) -> None:
    """Append the boundary that the job stands for; fail if it is to."""
    write_line(path, str(context.scheduled_for))
    if failures:
        raise ValueError("as it was told")
