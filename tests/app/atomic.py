"""Atomic tasks for the tests. Their effects are groups, in the database of the queue."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction

from alkstore_django import queues
from alkstore_django.exceptions import Discard, Retry
from alkstore_django.tasks import task


def line(path: str, text: object) -> None:
    with open(path, "ab", buffering=0) as file:
        file.write(f"{text}\n".encode())


def wait_for(path: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not Path(path).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody made {path}")
        time.sleep(0.01)


class Boom(Exception):
    """What the tasks here fail with."""


def _raise() -> None:
    raise Boom("a callback")


@task(atomic=True)
def make_group(name: str) -> str:
    Group.objects.create(name=name)
    return name


@task(atomic=True, backoff=0, max_attempts=50)
def make_group_whatever_happens(name: str, seconds: float) -> None:
    """To be run again when its database has gone away in the middle. A name can be given only once."""
    Group.objects.create(name=name)
    time.sleep(seconds)


@task(atomic="default")
def hold(path: str, name: str, gate: str) -> None:
    """Make the group, append ``start <name>``, wait for the file ``gate``, append ``end <name>``."""
    Group.objects.create(name=name)
    line(path, f"start {name}")
    wait_for(gate)
    line(path, f"end {name}")


@task(atomic=True)
def nap(path: str, name: str, seconds: float) -> None:
    line(path, f"start {name}")
    Group.objects.create(name=name)
    time.sleep(seconds)
    line(path, f"end {name}")


@task(atomic=True, backoff=0, max_attempts=3)
def fail_times(path: str, name: str, times: int) -> None:
    """Make a group in each run, and fail in the first ``times`` of them."""
    line(path, "run")
    run = len(Path(path).read_text().splitlines())
    Group.objects.create(name=f"{name} {run}")
    transaction.on_commit(partial(line, path, f"committed {run}"))
    if run <= times:
        raise Boom(f"run {run}")


@task(atomic=True)
def discard(name: str) -> None:
    Group.objects.create(name=name)
    raise Discard("not worth it")


@task(atomic=True, max_attempts=2)
def ask_again(path: str, name: str) -> None:
    """Ask for another run in the first one."""
    line(path, "run")
    Group.objects.create(name=name)
    if len(Path(path).read_text().splitlines()) == 1:
        raise Retry("again", after=0)


@task(atomic=True)
def return_unserialisable(name: str) -> object:
    Group.objects.create(name=name)
    return object()


@task(atomic=True, backoff=0, max_attempts=2)
def break_at_commit(path: str) -> None:
    """Break a foreign key, which SQLite and PostgreSQL look at when the transaction is committed."""
    line(path, "run")
    Group.objects.create(name=f"run {len(Path(path).read_text().splitlines())}")
    Permission.objects.create(name="broken", codename="broken", content_type_id=2**30)


@task(atomic=True, timeout=60)
def hold_for_long(path: str, name: str, gate: str) -> None:
    hold.func(path, name, gate)


@task(atomic=True)
def block(path: str, name: str) -> None:
    """Make the group, append ``start <name>``, and sit in one call for a minute."""
    Group.objects.create(name=name)
    line(path, f"start {name}")
    time.sleep(60)


@task(atomic=True)
def cancel_own_job(name: str) -> None:
    Group.objects.create(name=name)
    (job_id,) = queues.Job.objects.filter(state="processing").values_list("pk", flat=True)
    assert queues.cancel(job_id)


@task(atomic=True)
def with_callbacks(path: str) -> None:
    """Callbacks of the commit, of which the second fails."""
    Group.objects.create(name="callbacks")
    seen = partial(_look, path, connection.in_atomic_block)
    transaction.on_commit(seen)
    transaction.on_commit(_raise)


def _look(path: str, was_inside: bool) -> None:
    line(path, f"inside {was_inside}, then {connection.in_atomic_block}")


@task(atomic=True, max_attempts=1)
def nested_durable() -> None:
    with transaction.atomic(durable=True):
        pass


@task(atomic=True, backoff=0, max_attempts=5)
def lock_both(path: str, first: str, second: str) -> None:
    """Change two groups; two of these with the names exchanged, at the same time, are a deadlock."""
    Group.objects.filter(name__startswith=first).update(name=f"{first} changed")
    line(path, f"run {first}")  # with one of them locked: the other, who has its own, waits for it
    deadline = time.monotonic() + 30
    while len(Path(path).read_text().splitlines()) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    Group.objects.filter(name__startswith=second).update(name=f"{second} changed")
    Group.objects.create(name=f"done {first}")


# -- killed at a point of the run ---------------------------------------------------------------------


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task(atomic=True)
def killed(path: str, where: str) -> None:
    """Make a group; the first run kills the process: in the ``body``, ``before`` or ``after`` the commit."""
    first = not Path(path).exists()
    line(path, "run")
    Group.objects.create(name="effect")
    points: dict[str, Callable[[], Any]] = {
        "body": _kill,
        "before": partial(setattr, connection, "_commit", _kill),
        "after": partial(transaction.on_commit, _kill),
    }
    if first:
        points[where]()


# -- what ends the whole transaction ------------------------------------------------------------------


@task(atomic=True, backoff=0)
def lose_connection(path: str) -> None:
    """In the first run, let the server cut the connection."""
    first = not Path(path).exists()
    line(path, "run")
    Group.objects.create(name="effect")
    if first:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            else:
                cursor.execute("KILL CONNECTION_ID()")


@task(atomic=True, backoff=0)
def fill_disk(path: str) -> None:
    """In the first run, let SQLite find that its disk is full."""
    first = not Path(path).exists()
    line(path, "run")
    Group.objects.create(name="effect")
    with connection.cursor() as cursor:
        ((pages,),) = cursor.execute("PRAGMA page_count").fetchall()
        ((size,),) = cursor.execute("PRAGMA page_size").fetchall()
        cursor.execute(f"PRAGMA max_page_count = {pages if first else 2**30}")  # of this connection
        if first:  # more than fits, even if all there is were free
            cursor.execute("CREATE TABLE filling AS SELECT zeroblob(%s)", [(pages + 1) * size])


@task(atomic=True, backoff=0, max_attempts=50, timeout=0.2)
def out_of_time(path: str) -> None:
    """In the first run, and on a busy machine perhaps in later ones."""
    line(path, "run")
    Group.objects.create(name="effect")
    if len(Path(path).read_text().splitlines()) == 1:
        wait_for("never")


@task(atomic=True, backoff=0, max_attempts=50, timeout=0.2)
def stuck(path: str) -> None:
    """In the first run, hold the transaction in a call that nothing interrupts. Later ones may be late."""
    line(path, "run")
    Group.objects.create(name="effect")
    if len(Path(path).read_text().splitlines()) == 1:
        time.sleep(600)


@task(atomic=True, backoff=0, max_attempts=1)
def endless(path: str) -> None:
    line(path, "run")
    Group.objects.create(name="effect")
    wait_for("never")
