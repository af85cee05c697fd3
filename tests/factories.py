"""Queues of a test's own, rows as other programs or the passing of time leave them, the database's clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.db import connections
from django.db.models import Model

from alkstore_django.models import Attempt, DeadJob, Job, Result, Run
from alkstore_django.queues import Queue
from alkstore_django.sql import get_dialect
from alkstore_django.sql.functions import EpochNow

T = TypeVar("T")

_numbers = itertools.count(1)


def queue(**options: Any) -> Queue:
    """A queue that no other test knows; those made later come later in the order of names, too."""
    return Queue(f"queue {next(_numbers):05}", **options)


def now(using: str = "default") -> int:
    """The clock of the database, in whole Unix seconds."""
    return int(ask(f"SELECT {get_dialect(connections[using]).now}", using=using)[0][0])


def at(offset: int) -> Any:
    """A moment that many seconds from now, by the clock of the database, as a value for a column."""
    return EpochNow() + offset


def within_a_second(scenario: Callable[[], T], using: str = "default") -> T:
    """What ``scenario`` returns when it begins and ends in one second of the database's clock.

    Boundaries of one second can be looked at only so; ``scenario`` makes all that it needs itself. Whatever
    it raises, ``pytest.raises`` among it, may be because a second has ended.
    """
    for _ in range(20):
        start = now(using)
        try:
            found = scenario()
        except (Exception, pytest.fail.Exception):
            if now(using) == start:
                raise
        else:
            if now(using) == start:
                return found
    raise AssertionError("the scenario takes about a second, or longer")


def live(queue: str = "default", payload: str = "{}", *, using: str = "default", **columns: Any) -> int:
    """A row of the live table, written by nobody in particular; its id."""
    return int(Job.objects.using(using).create(queue=queue, payload=payload, **columns).pk)


def claimed(queue: str = "default", payload: str = "{}", **columns: Any) -> int:
    """A row that a worker holds, or held: ``claim_expires_at=at(-1)`` is a claim that has just lapsed."""
    held = {"worker_id": "another", "claim_expires_at": at(60), "claimed_at": at(-10), "attempts": 1}
    return live(queue, payload, **{"state": Job.PROCESSING, **held, **columns})


def dead(job_id: int, queue: str = "default", payload: str = "{}", **columns: Any) -> int:
    """A dead letter of that id."""
    DeadJob.objects.create(id=job_id, queue=queue, payload=payload, **{"attempts": 3, **columns})
    return job_id


def run(job_id: int, queue: str = "default", payload: str = "{}", **columns: Any) -> int:
    """What is left of a finished job."""
    given = {"status": Run.SUCCEEDED, "priority": 0, "attempts": 1, "max_attempts": 3, "worker_id": "w"}
    times = {"enqueued_at": at(-20), "started_at": at(-10), "finished_at": at(-5)}
    Run.objects.create(job_id=job_id, queue=queue, payload=payload, **{**given, **times, **columns})
    return job_id


def result(job_id: int, value: str = "1", **columns: Any) -> int:
    """A stored return value."""
    Result.objects.create(job_id=job_id, value=value, **columns)
    return job_id


def change(job_id: int, *, model: type[Model] = Job, using: str = "default", **columns: Any) -> None:
    """Write columns of one row, as another program would."""
    assert model._default_manager.using(using).filter(pk=job_id).update(**columns) == 1


def lapse(job_id: int, using: str = "default") -> None:
    """Let a claim end a second ago."""
    change(job_id, using=using, claim_expires_at=at(-1))


def columns(job_id: int, *names: str, model: type[Model] = Job, using: str = "default") -> tuple[Any, ...]:
    """Columns of one stored row."""
    return tuple(model._default_manager.using(using).values_list(*names).get(pk=job_id))


def where(job_id: int) -> str:
    """The tables that hold a job of that id, by name."""
    models = {"live": Job, "dead": DeadJob, "run": Run}
    return " ".join(
        name for name, model in models.items() if model._default_manager.filter(pk=job_id).exists()
    )


def history(job_id: int) -> list[tuple[Any, ...]]:
    """Kind, life and attempt of every line of a job's history, oldest first."""
    return list(Attempt.objects.of_job(job_id).values_list("kind", "life", "attempt"))


def ask(sql: str, params: Any = None, using: str = "default") -> list[tuple[Any, ...]]:
    """Run any SQL; its rows."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall()) if cursor.description else []


@contextmanager
def another_session(using: str = "default") -> Iterator[Any]:
    """A cursor of a transaction of somebody else's, which is committed at the end."""
    another = connections[using].copy()
    try:
        another.set_autocommit(False)
        with another.cursor() as cursor:
            yield cursor
        another.commit()
    finally:
        another.close()
