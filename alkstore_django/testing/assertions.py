"""``assert_enqueued`` and ``assert_not_enqueued``: what waits or runs, and what does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from alkstore_django import served, task_results
from alkstore_django.compat import Task, task_backends
from alkstore_django.envelopes import Envelope, unseal
from alkstore_django.exceptions import UndecodablePayload
from alkstore_django.inspection import JobInfo, get_job
from alkstore_django.models import Job
from alkstore_django.tasks import stored_name
from alkstore_django.values import instant, seconds

from .travelling import now

MOST_LISTED = 20
"""Jobs that the message of a failure lists."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A live job of a task."""

    job: JobInfo
    envelope: Envelope
    using: str

    def __str__(self) -> str:
        arguments = [repr(value) for value in self.envelope.args]
        arguments += [f"{name}={value!r}" for name, value in self.envelope.kwargs.items()]
        wait = (self.job.run_at or 0) - now(self.using)
        due = "running" if self.job.state == Job.PROCESSING else f"due in {wait} s" if wait > 0 else "due"
        where = f"queue={self.job.queue} priority={self.job.priority} {due}"
        return f"{self.envelope.task}({', '.join(arguments)})  {where}"

    @property
    def result(self) -> Any:
        return task_results.from_job(self.using, self.job)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The conditions; ``None`` is none."""

    task: str | None
    args: Sequence[Any] | None
    kwargs: Mapping[str, Any] | None
    queue: str | None
    priority: int | None
    run_after: datetime | timedelta | int | float | None

    def __str__(self) -> str:
        given = [
            f"{name}={value!r}"
            for name in ("args", "kwargs", "queue", "priority", "run_after")
            if (value := getattr(self, name)) is not None
        ]
        return f"{self.task or 'any task'}{' with ' if given else ''}{', '.join(given)}"

    def objection(self, waiting: Waiting) -> str:
        """Why a job is not what is wanted; empty if it is."""
        return next(self._objections(waiting), "")

    def _objections(self, waiting: Waiting) -> Iterator[str]:
        envelope, job = waiting.envelope, waiting.job
        if self.task is not None and envelope.task != self.task:
            yield "another task"
        if self.args is not None and not _same(list(self.args), envelope.args[: len(self.args)]):
            yield f"args begin with {envelope.args[: len(self.args)]!r}"
        for name, value in (self.kwargs or {}).items():
            if name not in envelope.kwargs:
                yield f"no keyword {name!r}"
            elif not _same(value, envelope.kwargs[name]):
                yield f"{name} is {envelope.kwargs[name]!r}"
        if self.queue is not None and job.queue != self.queue:
            yield f"queue is {job.queue!r}"
        if self.priority is not None and job.priority != self.priority:
            yield f"priority is {job.priority}"
        if self.run_after is not None:
            away = _away(self.run_after, waiting)
            if abs(away) > 1:
                yield f"run_after is {away:+} s away"


def enqueued(task: Any = None, *, using: str | None = None) -> list[Any]:
    """The results of all tasks (of that one) that wait or run, by their ids."""
    name = _name(task)
    return [each.result for each in _waiting(_aliases(task, using)) if name in (None, each.envelope.task)]


def assert_enqueued(
    task: Any = None,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    run_after: datetime | timedelta | int | float | None = None,
    count: int | None = None,
    using: str | None = None,
) -> list[Any]:
    """That a job waits or runs of which all this is true; the results of those, by their ids.

    ``task`` is a task or a stored name. ``args`` are its first positional arguments, ``kwargs`` some of
    its keywords; values are compared as JSON has them, and ``unittest.mock.ANY`` is equal to any.
    ``run_after`` is an aware ``datetime``, or a ``timedelta`` or seconds from the enqueue or from now, to
    the second. ``count``: exactly so many. ``using`` is the alias of one database, by default that of the
    task's backend, else each that holds jobs of ours. Jobs that have ended are not found. Raises
    ``AssertionError``, which lists what there is.
    """
    wanted = Wanted(_name(task), args, kwargs, queue, priority, run_after)
    waiting = _waiting(_aliases(task, using))
    found = [each for each in waiting if not wanted.objection(each)]
    if len(found) == count or (count is None and found):
        return [each.result for each in found]
    how_many = "No job" if not found else f"{len(found)} jobs" if len(found) > 1 else "1 job"
    expected = "" if count is None else f", and not {count}"
    raise AssertionError(f"{how_many} of {wanted} enqueued{expected}. {_listed(waiting, wanted)}")


def assert_not_enqueued(
    task: Any = None,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    run_after: datetime | timedelta | int | float | None = None,
    using: str | None = None,
) -> None:
    """That no job waits or runs of which all this is true; see ``assert_enqueued``."""
    wanted = Wanted(_name(task), args, kwargs, queue, priority, run_after)
    found = [each for each in _waiting(_aliases(task, using)) if not wanted.objection(each)]
    if found:
        raise AssertionError(f"{wanted} is enqueued. {_listed(found)}")


def _name(task: Any) -> str | None:
    if task is None or isinstance(task, str):
        return task
    if not isinstance(task, Task):
        raise TypeError(f"task must be a task or its stored name, not {task!r}.")
    return stored_name(task)


def _aliases(task: Any, using: str | None) -> list[str]:
    if using is not None:
        return [using]
    if isinstance(task, Task):
        own = getattr(task_backends[task.backend], "using", None)
        if own is None:
            raise TypeError(f"{stored_name(task)} is a task of another backend: it leaves no job to look at.")
        return [own]
    return served.databases()


def _waiting(aliases: Sequence[str]) -> list[Waiting]:
    found = []
    for alias in aliases:
        for job_id in Job.objects.using(alias).order_by("id").values_list("id", flat=True):
            job = get_job(alias, job_id)
            try:
                if job is not None and job.state in (Job.PENDING, Job.PROCESSING):
                    found.append(Waiting(job, unseal(job.raw_payload), alias))
            except UndecodablePayload:
                continue  # no task
    return found


def _listed(waiting: Sequence[Waiting], wanted: Wanted | None = None) -> str:
    if not waiting:
        return "No task waits."
    lines = []
    for each in waiting[:MOST_LISTED]:
        why = wanted.objection(each) if wanted else ""
        lines.append(f"  {each}{f'  ({why})' if why else ''}")
    if len(waiting) > MOST_LISTED:
        lines.append(f"  and {len(waiting) - MOST_LISTED} more")
    return "\n".join(["There are:", *lines])


def _same(expected: Any, found: Any) -> bool:
    """Equal, with tuples as JSON has them: lists."""
    if isinstance(expected, list | tuple) and isinstance(found, list):
        return len(expected) == len(found) and all(map(_same, expected, found))
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(_same(expected[key], found[key]) for key in found)
    return bool(expected == found)


def _away(wanted: datetime | timedelta | int | float, waiting: Waiting) -> int:
    """Seconds from the wanted moment to that of the job; a duration is from its enqueue or from now."""
    run_at = waiting.job.run_at or 0
    if isinstance(wanted, datetime):
        return run_at - instant("run_after", wanted)
    due = run_at - seconds("run_after", wanted)
    return min(due - waiting.job.created_at, due - now(waiting.using), key=abs)
