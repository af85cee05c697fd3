"""Results: a JSON value for each job, saved by its worker or by whoever has one, and kept for a while.

Any job can have one, whatever put it in and whatever queue it is of. ``using`` is everywhere the alias of
a database, by default the router's answer for jobs; ``job_id`` is a whole number, for a task
``int(result.id)``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.utils.asyncio import async_unsafe
from django.utils.module_loading import import_string

from .exceptions import ResultDoesNotExist, TaskExpired, UndecodablePayload
from .failures import class_path
from .inspection import get_job, is_id
from .models import Attempt, Job, Result, ResultManager, alias
from .payloads import decode, encode
from .pruning import MOST, Pass
from .retention import chosen
from .values import seconds, span

Duration = int | float | timedelta

_LIVE = (Job.PENDING, Job.PROCESSING)
_NOTHING: Any = object()

# What has a thread lives above, and is found by its name, as a backend is.
UNTIL = "alkstore_django.runtime.waiting.until"
AUNTIL = "alkstore_django.runtime.waiting.auntil"


def save(job_id: int, value: Any, *, ttl: Duration | None = None, using: str | None = None) -> None:
    """Save a value for a job, in the caller's transaction; a second one replaces the first.

    It is strict JSON, as a payload is, and kept for ``ttl`` from now (seconds or a ``timedelta``, at least
    a second, fractions rounded up) or until somebody deletes it (``None``). The job need not exist.
    Raises ``TypeError`` and ``ValueError`` before any SQL; ``DataError`` for a value that the server cannot
    take.
    """
    if not is_id(_checked(job_id)):
        raise ValueError(f"job_id must be from {-(2**63)} to {2**63 - 1}, not {job_id}.")
    text = encode(value, "value")
    kept = None if ttl is None else seconds("ttl", ttl, low=1)
    _results(alias(using)).put(job_id, text, kept)


def get(job_id: int, default: Any = _NOTHING, *, using: str | None = None) -> Any:
    """The value of a job, which may be ``None``; else ``default``.

    Without a default, ``ResultDoesNotExist`` (a ``LookupError``) is raised: none was saved, or its time is
    over, which it is at its very second. Raises ``UndecodablePayload`` for what another program stored and
    is not JSON.
    """
    found = _value(alias(using), _checked(job_id))
    if found is not _NOTHING:
        return found
    if default is _NOTHING:
        raise ResultDoesNotExist(job_id)
    return default


@async_unsafe("It waits in the thread: use await results.await_result().")
def wait(job_id: int, timeout: Duration | None = None, *, using: str | None = None) -> Any:
    """Wait until a job has a value, and return it. ``timeout``: seconds or a ``timedelta``; 0 looks once.

    Raises ``ResultDoesNotExist`` as soon as none can be expected any more, whose ``state`` tells why: the job
    is a dead letter (``error`` is its last error), has expired, was cancelled or discarded, has finished
    without a value, or nothing is known of it, as of one that was never there, or that another program has
    ended. A retry is no end.

    Raises ``TimeoutError`` after ``timeout``, and otherwise as ``AlkTaskResult.wait`` does, with which it
    shares the one thread and connection that look for all who wait. In async code: ``await_result``.
    """
    database, limit = alias(using), _limit(timeout)
    look = _Look(database, _checked(job_id))
    import_string(UNTIL)(database, job_id, look, limit, or_result=True)
    return look.value


async def await_result(job_id: int, timeout: Duration | None = None, *, using: str | None = None) -> Any:
    """``wait``, awaited: it takes up no thread."""
    database, limit = alias(using), _limit(timeout)
    look = _Look(database, _checked(job_id))
    await import_string(AUNTIL)(database, job_id, sync_to_async(look), limit, or_result=True)
    return look.value


def sweep(using: str | None = None) -> int:
    """Delete the results whose time is over, in bounded batches; how many. Workers do it by themselves."""
    database = alias(using)
    steps = Pass(database, chosen(database, ["results"]), MOST)
    while steps.step():
        pass
    return steps.deleted["results"]


class _Look:
    """One look for the value of a job: ``True`` with ``value``, ``False`` while it may still come."""

    def __init__(self, using: str, job_id: int) -> None:
        self.value: Any = None
        self._using = using
        self._job_id = job_id

    def __call__(self) -> bool:
        if self._is_there():
            return True
        job = get_job(self._using, self._job_id)
        if job is not None and job.state in _LIVE:
            return False
        if self._is_there():  # it came with the end of the job, between the two looks
            return True
        if job is None:
            raise ResultDoesNotExist(self._job_id)
        error = job.last_error or ""
        state = "expired" if job.state == "dead" and self._has_expired(error) else job.state
        raise ResultDoesNotExist(self._job_id, state, error)

    def _is_there(self) -> bool:
        found = _value(self._using, self._job_id)
        self.value = None if found is _NOTHING else found
        return found is not _NOTHING

    def _has_expired(self, error: str) -> bool:
        """By its history; honker, which keeps none, says it in one word."""
        history = Attempt.objects.db_manager(self._using).of_job(self._job_id).exclude(error_class="")
        last = history.last()
        return error == "expired" if last is None else last.error_class == class_path(TaskExpired)


def _value(using: str, job_id: int) -> Any:
    text = _results(using).value(job_id) if is_id(job_id) else None
    if text is None:
        return _NOTHING
    try:
        return decode(text)
    except UndecodablePayload as error:
        raise UndecodablePayload(f"The result of job id={job_id}: {error}") from error


def _checked(job_id: object) -> int:
    if isinstance(job_id, bool) or not isinstance(job_id, int):
        raise TypeError(f"job_id must be a whole number, such as int(result.id), not {job_id!r}.")
    return job_id


def _limit(timeout: Duration | None) -> float | None:
    return None if timeout is None else span("timeout", timeout, low=0)


def _results(using: str) -> ResultManager:
    return Result.objects.db_manager(using)


asave = sync_to_async(save)
aget = sync_to_async(get)
asweep = sync_to_async(sweep)
