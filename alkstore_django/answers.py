"""``AlkTaskResult``: what ``enqueue`` and ``get_result`` answer with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from asgiref.sync import sync_to_async
from django.utils.asyncio import async_unsafe

from .compat import TASK_REFRESH_ATTRS, AnyTaskResult, task_backends
from .values import span


@dataclass(frozen=True, slots=True, kw_only=True)
class AlkTaskResult(AnyTaskResult):  # type: ignore[misc] # as contexts.TaskContext
    """A ``TaskResult`` of ``django.tasks``, and what Django does not have yet.

    Two results of the same job are equal however they were come by: ``created`` does not count.
    """

    created: bool = field(default=True, compare=False)
    """``False`` if ``enqueue`` added no job, since another one held the key of a unique task."""

    raw_metadata: dict[str, Any] = field(default_factory=dict, compare=False)
    """What the task was enqueued with, or has saved last."""

    @property
    def metadata(self) -> dict[str, Any]:
        """``raw_metadata`` without the keys that begin with ``_``, which are not the task's."""
        return {key: value for key, value in self.raw_metadata.items() if not key.startswith("_")}

    def refresh(self) -> None:
        """Look again at what the database knows."""
        self._take(self.task.get_backend().get_result(self.id))

    async def arefresh(self) -> None:
        """``refresh``, awaited."""
        self._take(await self.task.get_backend().aget_result(self.id))

    def cancel(self) -> bool:
        """Cancel the job, in the caller's transaction; ``False`` if there is nothing to cancel.

        A job that waits never runs. A running one is told: within about a second a coroutine is
        cancelled and ``context.is_cancelled`` is true; whatever it does then does not count. Nothing to
        cancel is a job that has ended, a dead letter, and an atomic run, which ends as a whole. This
        result stays as it was until ``refresh``, which finds it ``FAILED``, with ``TaskCancelled`` as its
        last error.
        """
        return bool(self._backend.cancel(self.id))

    async def acancel(self) -> bool:
        """``cancel``, awaited."""
        return await sync_to_async(self.cancel)()

    def _take(self, fresh: Any) -> None:
        for name in (*TASK_REFRESH_ATTRS, "raw_metadata"):
            object.__setattr__(self, name, getattr(fresh, name))

    @async_unsafe("It waits in the thread: use await result.await_result().")
    def wait(self, timeout: int | float | timedelta | None = None) -> Self:
        """Wait until the task has ended for good, by whatever way; this result, refreshed.

        Its ``status`` tells how: ``SUCCESSFUL``, with ``return_value``; or ``FAILED``, with ``errors``, for a
        task that failed, was discarded, expired or was cancelled (``TaskExpired`` and ``TaskCancelled`` are
        the last error then). A retry is no end. ``timeout`` is in seconds or a ``timedelta``; 0 looks once.

        Raises ``TimeoutError`` after it, the result refreshed; ``TaskResultDoesNotExist`` when there is no
        result (any more): the time to keep it is over, another program has ended the job, or the
        transaction of the enqueue was rolled back. Raises ``RuntimeError`` in a transaction of the database
        that holds the job, which could wait for ever: it would not see the end, or keep it from coming;
        ``TypeError`` and ``ValueError`` for a bad ``timeout``. In async code: ``await await_result()``.

        No transaction is open meanwhile, and the database is not asked by each who waits: see the
        documentation. In a task it takes up a thread of the worker, which the other task may need.
        """
        self._backend.wait(self, _limit(timeout))
        return self

    async def await_result(self, timeout: int | float | timedelta | None = None) -> Self:
        """``wait``, awaited: it takes up no thread."""
        await self._backend.await_result(self, _limit(timeout))
        return self

    @property
    def _backend(self) -> Any:
        return task_backends[self.backend]


def _limit(timeout: int | float | timedelta | None) -> float | None:
    return None if timeout is None else span("timeout", timeout, low=0)
