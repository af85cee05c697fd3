"""Tasks that wait for others."""

from __future__ import annotations

from datetime import timedelta

from alkstore_django.tasks import task
from tests.app.tasks import add


@task
def ask_another(a: int, b: int) -> int:
    return int(add.enqueue(a, b).wait(60).return_value)


@task(timeout=1, max_attempts=1)
def wait_for_ever() -> None:
    add.using(run_after=timedelta(days=1)).enqueue(1, 2).wait()


@task(atomic=True)
def add_atomically(a: int, b: int) -> int:
    return a + b
