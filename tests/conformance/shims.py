"""Our backend as Django's tests want it: what they know of their own two is added, nothing is taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from alkstore_django.backends import AlkstoreBackend
from alkstore_django.models import Job
from alkstore_django.tasks import AlkTask
from tests.in_process import work

T = TypeVar("T")


def beside_the_loop(ask: Callable[[], T]) -> T:
    """For sync calls in coroutines: Django's backends have no database, which would refuse them there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ask()

    def ask_and_hang_up() -> T:
        try:
            return ask()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask_and_hang_up).result()


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceTask(AlkTask):
    """Django's backends run a task once."""

    max_attempts: int = 1


class KeepingBackend(AlkstoreBackend):
    """As Django's ``DummyBackend``: tasks are put in, and nobody runs them."""

    task_class = OnceTask

    def get_result(self, result_id: str) -> Any:
        return beside_the_loop(lambda: super(KeepingBackend, self).get_result(result_id))

    @property
    def results(self) -> list[Any]:
        found = beside_the_loop(lambda: list(Job.objects.order_by("id").values_list("id", flat=True)))
        return [self.get_result(str(job_id)) for job_id in found]

    def clear(self) -> None:
        Job.objects.all().delete()


class DrainedBackend(AlkstoreBackend):
    """As Django's ``ImmediateBackend``: who enqueues a task gets the result of its run, by a worker."""

    task_class = OnceTask

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        result = super().enqueue(task, args, kwargs)
        work(task.queue_name, using=self.using)
        return self.get_result(result.id)

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        return await sync_to_async(self.enqueue)(task, args, kwargs)
