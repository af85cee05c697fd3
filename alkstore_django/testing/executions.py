"""A worker's executions, in the thread of a test and in its transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from alkstore_django.runtime.async_execution import AsyncExecution
from alkstore_django.runtime.atomic_runs import AtomicRuns
from alkstore_django.runtime.execution import Execution
from alkstore_django.tasks import option
from alkstore_django.turns import Outcome

from .transactions import committed


class Inline:
    """What both kinds do otherwise: remember the exception, and leave the test's connections alone."""

    error: BaseException | None = None

    def judge(self, error: BaseException) -> Outcome:
        self.error = error
        return super().judge(error)  # type: ignore[misc,no-any-return] # an Execution's

    def let_go_of_connections(self) -> None:
        pass


class InlineExecution(Inline, Execution):
    def call(self) -> Any:
        if option(self.task, "atomic"):
            return super().call()
        with committed():
            return super().call()


class InlineAsyncExecution(Inline, AsyncExecution):
    async def acall(self) -> Any:
        surroundings = committed()
        await sync_to_async(surroundings.__enter__)()
        try:
            return await super().acall()
        finally:
            await sync_to_async(surroundings.__exit__)(None, None, None)


class InlineAtomicRuns(AtomicRuns):
    """One at a time, and inside of whatever transaction the test has open."""

    def transaction(self) -> AbstractContextManager[None]:
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with committed(self.using), transaction.atomic(using=self.using):
            yield
