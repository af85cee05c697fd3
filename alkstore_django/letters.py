"""Find dead letters by what they are: their queue, their task, their error, when they died."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from .envelopes import task_name
from .failures import MAX_ERROR, storable
from .inspection import is_id
from .models import DeadJob, FoundLetter, Letter, Wanted, WorkerProcess
from .models.base import chunks
from .names import is_text
from .values import instant, seconds

STEP = 1_000
"""Rows that one read walks past."""

HEAVY_STEP = 200
"""The same where their payloads are read."""

Moment = datetime | timedelta | int | float
"""A moment, or so long ago."""


class DeadLetter(NamedTuple):
    """``task`` is the stored name, empty for what is no task, and where nobody asked for it."""

    id: int
    queue: str
    task: str


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """What must hold of a dead letter: all that is given. Of queues and tasks any may; tasks are stored
    names, or patterns in which ``*`` stands for anything."""

    wanted: Wanted = Wanted()
    tasks: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether it asks for anything: an empty one means every dead letter."""
        return bool(self.tasks) or self.wanted != Wanted()

    def is_meant(self, letter: Letter | FoundLetter) -> bool:
        """What the database cannot tell: whether it is of one of the tasks."""
        return not self.tasks or self._is_of_task(task_name(letter.payload))

    def _is_of_task(self, name: str) -> bool:
        return bool(name) and any(_matches(pattern, name) for pattern in self.tasks)


def asked(
    using: str,
    queue: str | Iterable[str] | None = None,
    task: str | Iterable[str] | None = None,
    error: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> LetterFilter:
    """The filter that is meant. Raises ``TypeError`` and ``ValueError`` before any SQL; a ``timedelta`` is so
    long ago by the clock of the database, which is asked for it."""
    queues, tasks = _names("queue", queue), _names("task", task)
    if error is not None and not isinstance(error, str):
        raise TypeError(f"error must be a text, not {error!r}.")
    if error == "":
        raise ValueError("error must not be empty: leave it out, or say what the error says.")
    ages = [_age(name, value) for name, value in (("since", since), ("until", until))]
    now = None
    if any(ago for _, ago in ages):
        now = WorkerProcess.objects.db_manager(using).clock()
    begin, end = (value if value is None or not ago else (now or 0) - value for value, ago in ages)
    if begin is not None and end is not None and begin >= end:
        raise ValueError("since must lie before until.")
    return LetterFilter(Wanted(queues, storable(error or "", MAX_ERROR), begin, end), tasks)


def find(
    using: str, wanted: LetterFilter, ids: Sequence[int] = (), *, tasks: bool = False
) -> Iterator[DeadLetter]:
    """The dead letters (of these ids, if any are given) that match, by id; of those that are there now.

    ``tasks``: with their tasks. Locks none, and holds a bounded number in memory. Those that die meanwhile
    may be among them, as far as they come after the others.
    """
    reads = tasks or bool(wanted.tasks)
    for letters in _among(using, wanted, ids, reads) if ids else _all(using, wanted, reads):
        for letter in letters:
            if wanted.is_meant(letter):
                yield DeadLetter(letter.id, letter.queue, task_name(letter.payload) if tasks else "")


def _among(using: str, wanted: LetterFilter, ids: Sequence[int], reads: bool) -> Iterator[list[FoundLetter]]:
    dead = DeadJob.objects.db_manager(using)
    for chunk in chunks(sorted({job_id for job_id in ids if is_id(job_id)}), HEAVY_STEP):
        yield dead.among(chunk, wanted.wanted, payloads=reads)


def _all(using: str, wanted: LetterFilter, reads: bool) -> Iterator[list[FoundLetter]]:
    dead = DeadJob.objects.db_manager(using)
    after, last = -(2**63), dead.last_id()
    while last is not None and (end := dead.step(after, last, HEAVY_STEP if reads else STEP)) is not None:
        yield dead.between(after, end, wanted.wanted, payloads=reads)
        after = end


def _names(kind: str, value: str | Iterable[str] | None) -> tuple[str, ...]:
    names = () if value is None else (value,) if isinstance(value, str) else tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{kind} must be a name, or several, not {name!r}.")
        if not name:
            raise ValueError(f"{kind} must not be an empty name.")
        if not is_text(name):
            raise ValueError(f"{kind} {name!r} has characters that no name has.")
    return names


def _age(name: str, value: Moment | None) -> tuple[int | None, bool]:
    """Unix seconds, or seconds and that they are so long ago."""
    if value is None:
        return None, False
    if isinstance(value, timedelta):
        return seconds(name, value), True
    return instant(name, value), False


def _matches(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
