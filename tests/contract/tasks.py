"""Tasks of the contract tests. Nothing here runs unless a test calls it."""

from __future__ import annotations

from typing import Any

from alkstore_django.backoff import Backoff
from alkstore_django.compat import NATIVE
from alkstore_django.tasks import task

if NATIVE:
    from django.tasks import task as plain_task
else:
    from django_tasks import task as plain_task


@task
def send(to: Any = None, **options: Any) -> Any:
    return to


@task
def anything(*args: Any, **kwargs: Any) -> None: ...


@task
def other(*args: Any) -> None: ...


@task(
    queue_name="mail",
    priority=5,
    max_attempts=7,
    expires=600,
    backoff=Backoff(base=1),
    retry_on=(OSError,),
    name="contract.receipt",
    store_result=False,
)
def receipt(order: int) -> None: ...


@task(takes_context=True)
async def told(context: Any, value: int) -> int:
    return value


@plain_task
def plain(value: Any = None) -> Any:
    return value


@plain_task(priority=3, queue_name="mail")
def plain_with_options() -> None: ...
