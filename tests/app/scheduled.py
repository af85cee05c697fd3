"""A task with a schedule, which only the tests that import this know."""

from __future__ import annotations

from alkstore_django.schedules import schedule
from alkstore_django.tasks import task


@schedule("* * * * *")
@task
def tick_tock() -> None:
    pass
