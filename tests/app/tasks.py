"""Small tasks for the tests. Each leaves a line in a file or a result that a test can look at."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group

from alkstore_django.compat import NATIVE
from alkstore_django.exceptions import Discard, Retry
from alkstore_django.tasks import task

if NATIVE:
    from django.tasks import task as plain_task
else:
    from django_tasks import task as plain_task


class Boom(Exception):
    """What the tasks here fail with."""


def write_line(path: str, line: object) -> None:
    """Append a line in one write, which no other process can cut in two."""
    with open(path, "ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def wait_for_file(path: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not Path(path).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody made {path}")
        time.sleep(0.01)


# -- what works ---------------------------------------------------------------------------------------


@task
def nothing() -> None:
    pass


@task
def add(a: Any, b: Any) -> Any:
    return a + b


@plain_task
def plain_add(a: int, b: int) -> int:
    return a + b


@task
async def async_add(a: int, b: int) -> int:
    return a + b


@task
async def async_group(name: str) -> int:
    group = await Group.objects.acreate(name=name)
    return int(group.pk)


@task(takes_context=True)
def attempt(context: Any) -> dict[str, Any]:
    result = context.task_result
    return {"attempt": context.attempt, "id": result.id, "workers": len(result.worker_ids)}


@task
def write(path: str, line: str, seconds: float = 0) -> None:
    """Append the line and the process that ran it."""
    write_line(path, f"{line} {os.getpid()}")
    time.sleep(seconds)


@task
def write_later(path: str, line: str, queue: str) -> None:
    """Enqueue ``write`` in another queue."""
    write.using(queue_name=queue).enqueue(path, line)


@task
def write_group(path: str, name: str) -> None:
    """Append the line, and make a group of that name."""
    write_line(path, name)
    Group.objects.create(name=name)


@task
def hold(path: str, line: str, gate: str) -> None:
    """Append ``start <line>``, wait until the file ``gate`` is there, append ``end <line>``."""
    write_line(path, f"start {line}")
    wait_for_file(gate)
    write_line(path, f"end {line}")


@task(backoff=0)
def hold_with_queries(path: str, line: str, gate: str) -> int:
    """Like ``hold``, with a query before and after."""
    Group.objects.count()
    write_line(path, f"start {line}")
    wait_for_file(gate)
    count = Group.objects.count()
    write_line(path, f"end {line}")
    return count


@task
def nap(path: str, line: str, seconds: float) -> None:
    write_line(path, f"start {line}")
    time.sleep(seconds)
    write_line(path, f"end {line}")


@task
def spin(path: str, line: str, seconds: float) -> None:
    """Keep the interpreter busy with Python code."""
    write_line(path, f"start {line}")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sum(range(1000))
    write_line(path, f"end {line}")


# -- what fails ---------------------------------------------------------------------------------------


def fail_up_to(path: str, times: int) -> int:
    """Count a run in the file; raise ``Boom`` in the first ``times`` of them."""
    write_line(path, "run")
    run = len(Path(path).read_text().splitlines())
    if run <= times:
        raise Boom(f"run {run}")
    return run


@task(backoff=0, max_attempts=5)
def fail_times(path: str, times: int) -> int:
    return fail_up_to(path, times)


@task(backoff=1, max_attempts=5)
def fail_times_slowly(path: str, times: int) -> int:
    return fail_up_to(path, times)


@task(backoff=0, max_attempts=2)
def fail(message: str = "boom") -> None:
    raise Boom(message)


@task(backoff=0, no_retry=Boom)
def fail_for_good() -> None:
    raise Boom("no retry")


@task(backoff=0, retry_on=KeyError)
def fail_otherwise() -> None:
    raise Boom("retry only on KeyError")


@task
def discard(path: str) -> None:
    write_line(path, "run")
    raise Discard("not worth it")


@task(max_attempts=2)
def ask_again(path: str, after: Any = None) -> int:
    """Ask for another run, in the first one."""
    write_line(path, "run")
    if len(Path(path).read_text().splitlines()) == 1:
        raise Retry("again", after=after)
    return 2


@task(max_attempts=2)
def ask_always(path: str) -> None:
    write_line(path, "run")
    raise Retry("always again", after=0)


@task(backoff=0)
def return_unserialisable(path: str) -> object:
    write_line(path, "run")
    return object()


@task(backoff=0)
def return_infinity(path: str) -> float:
    write_line(path, "run")
    return float("inf")


@task
def list_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate())


@task
def switch_interval() -> float:
    return sys.getswitchinterval()


@task
def leave(code: int) -> None:
    sys.exit(code)


@task
def interrupt(path: str) -> None:
    write_line(path, "run")
    raise KeyboardInterrupt


@task
def kill_own_process(path: str, line: str, seconds: float = 0) -> None:
    """Append the line and the process, wait, and kill the process: no handler sees it coming."""
    write_line(path, f"{line} {os.getpid()}")
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


hoarded: list[bytearray] = []


@task
def hoard(path: str, line: str, megabytes: int, gate: str) -> None:
    """Occupy memory for good, append ``start <line>``, and wait until the file ``gate`` is there."""
    hoarded.append(bytearray(b"x" * (megabytes * 1024 * 1024)))
    write_line(path, f"start {line}")
    wait_for_file(gate)


from tests.app import atomic as atomic  # noqa: E402 - its tasks are found with those here
