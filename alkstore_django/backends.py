"""The ``django.tasks`` backend: ``"BACKEND": "alkstore_django.backends.AlkstoreBackend"`` in ``TASKS``.

``QUEUES`` are the queues that tasks may name (``[]``: any); ``OPTIONS["DATABASE"]`` is the alias of the
database, by default the router's answer. Nothing here imports models: tasks may be declared before
the apps are ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import repeat
from typing import Any

from asgiref.sync import sync_to_async

from . import alterations, keys, origins
from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    AnyTaskResult,
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    task_enqueued,
)
from .envelopes import Envelope, arguments
from .exceptions import UndecodablePayload
from .logs import get_logger
from .names import checked
from .signals import unique_conflict
from .tasks import AlkTask, check_database, option, stored_name

logger = get_logger(__name__)

_RESULT_ID = re.compile("[1-9][0-9]{0,18}")


class AlkstoreBackend(BaseTaskBackend):
    """Enqueues in the caller's transaction; ``manage.py alkworker`` runs the tasks."""

    task_class = AlkTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True
    supports_metadata = True

    @property
    def using(self) -> str:
        """The alias of the database that holds the jobs of this backend."""
        from .models import alias

        return alias(self.options.get("DATABASE"))

    def validate_task(self, task: Any) -> None:
        """Django's rules, that a worker can import the function by its path, and the queue's name."""
        if not isinstance(task.run_after, datetime | None):
            raise InvalidTask(f"run_after must be a datetime, not {task.run_after!r}.")
        super().validate_task(task)
        try:
            checked("queue", task.queue_name)
        except (TypeError, ValueError) as error:
            raise InvalidTask(str(error)) from error
        if task.func.__qualname__ != task.func.__name__ or task.func.__name__ == "<lambda>":
            raise InvalidTask("Task function must be defined at a module level, with a name of its own.")

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Add a job for the task. Raises ``InvalidTask``; ``TypeError`` and ``ValueError`` for arguments
        that JSON cannot hold, naming the path to them; all before any SQL."""
        from . import arrivals

        self.validate_task(task)
        check_database(task, using := self.using)  # a router may take its time
        envelope = _envelope(task, args, kwargs, self._extra(task))
        if option(task, "unique") is not None:
            return self._enqueue_unique(task, [envelope])[0]
        arrival = arrivals.add(using, task.queue_name, envelope.seal(), arrivals.row(**_options(task)))
        return self._enqueued(arrival, task, envelope)

    def enqueue_many(self, task: Any, calls: Iterable[Any]) -> list[Any]:
        """Add a job for each call, all or none, in one statement per 1,000; results in their order.
        Of a unique task those whose keys are free, as if they were enqueued one by one.

        A call is a tuple or list of positional arguments, or a dict of keyword arguments. Raises as
        ``enqueue`` does; the message names the call.
        """
        from . import arrivals

        self.validate_task(task)
        check_database(task, self.using)
        extra = self._extra(task)
        envelopes = [
            _envelope(task, *_arguments(call, f"calls[{index}]"), extra, path=f"calls[{index}].")
            for index, call in enumerate(calls)
        ]
        if option(task, "unique") is not None:
            return self._enqueue_unique(task, envelopes)
        texts = [envelope.seal() for envelope in envelopes]
        found = arrivals.add_many(self.using, task.queue_name, texts, arrivals.row(**_options(task)))
        return [self._enqueued(*each) for each in zip(found, repeat(task), envelopes, strict=False)]

    def envelope(self, task: Any, args: Any, kwargs: Any) -> Envelope:
        """The envelope of a call that is made later, by nobody in particular: a schedule. Raises as
        ``enqueue`` does for bad input."""
        self.validate_task(task)
        check_database(task, self.using)
        envelope = _envelope(task, args, kwargs, self._declared(task))
        if option(task, "unique") is not None:
            envelope.extra = {**envelope.extra, keys.UNIQUE: keys.stored(task, envelope)}
        return envelope

    def _extra(self, task: Any) -> dict[str, Any]:
        return self._declared(task) | origins.present()

    def _declared(self, task: Any) -> dict[str, Any]:
        """Our part of the envelope: what is not as the code and the settings say."""
        extra: dict[str, Any] = {} if self.alias == DEFAULT_TASK_BACKEND_ALIAS else {"backend": self.alias}
        if task.run_after is not None:
            extra["run_after"] = task.run_after.isoformat()
        if option(task, "expires") is not None:
            extra["expires"] = option(task, "expires")
        return extra | alterations.of(task, stored_name(task))

    def _enqueue_unique(self, task: Any, envelopes: Sequence[Envelope]) -> list[Any]:
        from . import arrivals, task_results, unique

        for envelope in envelopes:
            envelope.extra = {**envelope.extra, keys.UNIQUE: keys.stored(task, envelope)}
        calls = [
            unique.Call(keys.Key(envelope.extra[keys.UNIQUE]["digest"], task.unique_for), envelope.seal())
            for envelope in envelopes
        ]
        row = arrivals.row(**_options(task))
        answer = partial(task_results.placed, self.using, task)
        results = unique.add(self.using, task.queue_name, calls, task.on_conflict, row, answer)
        for result in results:
            if result.created:
                task_enqueued.send(type(self), task_result=result)
            elif task.on_conflict != keys.IGNORE:
                logger.info("Task %s was not enqueued: job id=%s has its key.", stored_name(task), result.id)
                unique_conflict.send_robust(type(self), task_result=result, task=task)
        return results

    def _enqueued(self, arrival: Any, task: Any, envelope: Envelope) -> AnyTaskResult:
        from . import task_results

        result = task_results.enqueued(arrival.id, arrival.created_at, task, envelope)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> AnyTaskResult:
        """The result of that id, at any stage. Raises ``TaskResultDoesNotExist``, also for a malformed
        id, for a job that is no task, and for one that another program finished."""
        from . import task_results

        job_id = _job_id(result_id)
        try:
            result = None if job_id is None else task_results.find_one(self.using, job_id, self.alias)
        except UndecodablePayload as error:
            raise TaskResultDoesNotExist(result_id) from error
        if result is None:
            raise TaskResultDoesNotExist(result_id)
        return result

    def cancel(self, result_id: str) -> bool:
        """``AlkTaskResult.cancel`` by id; ``False`` also for one that is unknown or malformed."""
        from . import cancellation

        job_id = _job_id(result_id)
        return job_id is not None and cancellation.cancel(self.using, job_id)

    def save_metadata(self, task_result: AnyTaskResult) -> bool:
        """Keep ``raw_metadata`` of the result of a task that runs; ``False``, and nothing is kept, if that
        attempt is not the present one. In a task, ``context.save_metadata()`` says the same with less."""
        from . import metadata
        from .metadata import Attempt

        if not task_result.worker_ids or (job_id := _job_id(task_result.id)) is None:
            return False
        attempt = Attempt(job_id, task_result.worker_ids[-1], task_result.attempts)
        return metadata.save(self.using, attempt, getattr(task_result, "raw_metadata", {}))

    async def asave_metadata(self, task_result: AnyTaskResult) -> bool:
        """``save_metadata``, awaited."""
        return await sync_to_async(self.save_metadata)(task_result)

    def wait(self, result: AnyTaskResult, seconds: float | None) -> None:
        """``AlkTaskResult.wait``."""
        from .runtime import waiting

        def has_ended() -> bool:
            result.refresh()
            return bool(result.is_finished)

        waiting.until(self.using, int(result.id), has_ended, seconds)

    async def await_result(self, result: AnyTaskResult, seconds: float | None) -> None:
        """``AlkTaskResult.await_result``."""
        from .runtime import waiting

        async def has_ended() -> bool:
            await result.arefresh()
            return bool(result.is_finished)

        await waiting.auntil(self.using, int(result.id), has_ended, seconds)


def _job_id(result_id: str) -> int | None:
    """``None`` for what can be no id."""
    text = str(result_id)
    return int(text) if _RESULT_ID.fullmatch(text) else None


def _envelope(task: Any, args: Any, kwargs: Any, extra: dict[str, Any], path: str = "") -> Envelope:
    return Envelope(stored_name(task), *arguments(args, kwargs, path), extra)


def _options(task: Any) -> dict[str, Any]:
    """What the row of a job says of its task."""
    return {
        "run_at": task.run_after,
        "priority": int(task.priority),
        "expires": option(task, "expires"),
        "max_attempts": option(task, "max_attempts"),
    }


def _arguments(call: Any, path: str) -> tuple[Any, Any]:
    if isinstance(call, dict):
        for key in call:
            if not isinstance(key, str):
                raise TypeError(f"{path} has the keyword {key!r}: names of arguments are strings.")
        return (), call
    if isinstance(call, tuple | list):
        return call, {}
    raise TypeError(f"{path} must be a tuple of positional or a dict of keyword arguments, not {call!r}.")
