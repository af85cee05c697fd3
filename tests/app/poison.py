"""Tasks that do to the process what no task should, and must do no harm to other tasks."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alkstore_django.tasks import task
from tests.app.tasks import write_line

FOREVER = 3_600


@contextmanager
def forking() -> Iterator[Any]:
    """Python warns of forks beside threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield multiprocessing.get_context("fork")


@task(max_attempts=1)
def fail() -> None:
    raise ValueError("no")


@task(max_attempts=1)
async def fail_in_the_loop() -> None:
    raise ValueError("no")


@task
def replace_environment() -> None:
    os.environ = dict(os.environ)  # type: ignore[assignment]  # noqa: B003
    os.environ["ALKSTORE_MESS"] = "left behind"


@task
def leave_thread() -> None:
    threading.Thread(target=time.sleep, args=[FOREVER], name="left-behind", daemon=False).start()


@task
def leave_pool() -> None:
    ThreadPoolExecutor(1, thread_name_prefix="left-behind").submit(time.sleep, FOREVER)


@task(max_attempts=1)
def terminate_child() -> bool:
    """Whether it was ended by the signal that is meant to."""
    with forking() as context:
        child = context.Process(target=time.sleep, args=[FOREVER])
        child.start()
    child.terminate()
    child.join(30)
    is_alive = child.is_alive()
    child.kill()
    return not is_alive


@task(max_attempts=1)
def fail_with_a_pool() -> None:
    with forking() as context, context.Pool(2) as pool:
        pool.map_async(time.sleep, [FOREVER, FOREVER])
        raise ValueError("something else went wrong")


@task(max_attempts=1)
def fork_and_return(path: str, fails: bool) -> int:
    with forking():
        child = os.fork()
    if not child:
        write_line(path, f"child {os.getpid()}")
        if fails:
            os.execvp("no-such-program", ["no-such-program"])  # noqa: S606, S607
    return os.getpid()


@task(max_attempts=1)
async def fork_and_return_in_the_loop(path: str, fails: bool) -> int:
    return int(fork_and_return.func(path, fails))


@task
def write_pid(path: str, key: str) -> None:
    write_line(path, f"{key} {os.getpid()}")


@task(max_attempts=1)
def exit_in_peace() -> None:
    os._exit(0)


@task
def close_output() -> None:
    sys.stdout.close()


@task(max_attempts=1)
def close_error_output() -> None:
    sys.stderr.close()
    raise ValueError("no")


@task
def leave_child() -> None:
    with forking() as context:
        context.Process(target=time.sleep, args=[20], name="left-behind").start()


@task(max_attempts=2, backoff=0)
async def sleep(seconds: float, path: str = "") -> str:
    if path:
        write_line(path, "sleeps")
    await asyncio.sleep(seconds)
    return "slept"


@task(max_attempts=1)
async def cancel_all(path: str = "", n: int = 0) -> None:
    """What a script does at its end; also to those that have not begun. ``n`` of them sleep by then."""
    while n and (not os.path.exists(path) or Path(path).read_text().count("sleeps") < n):
        await asyncio.sleep(0.02)
    for _ in range(5):
        await asyncio.sleep(0)
    for each in asyncio.all_tasks():
        if each is not asyncio.current_task():
            each.cancel()


class Lazy(Mapping[str, int]):
    """Raises while it is read, as what asks a database may."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __getitem__(self, key: str) -> int:
        raise RuntimeError("lazy")


@task
def return_lazy(path: str) -> Any:
    write_line(path, "ran")
    return Lazy()


@task(max_attempts=1, timeout=0.1)
def stay(path: str) -> None:
    """Whatever is raised in it, until the file is there."""
    while not os.path.exists(path):
        try:
            time.sleep(0.02)
        except BaseException:  # noqa: S112 - that is the point
            continue
