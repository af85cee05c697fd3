"""``TaskContext``: what a task with ``takes_context=True`` knows about its own run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.utils.asyncio import async_unsafe

from .compat import AnyTaskContext
from .values import seconds


class Hold:
    """A worker's grip on a job while it runs: what the worker tells the task, and what the task may ask.

    Safe from any thread. ``renew(claim, extend)`` asks the worker to hold the claim for ``extend``
    seconds, or for the task's visibility timeout; whether it is held, ``None`` if that is not known.
    """

    __slots__ = ("cut_off", "is_locked", "is_lost", "is_stopping", "renew")

    def __init__(self, renew: Callable[[Any, int | None], bool | None] | None = None) -> None:
        self.renew = renew
        self.is_lost = False
        """The claim belongs to another by now, or the job was cancelled: no outcome counts."""
        self.is_stopping = False
        """The worker stops; the task has its grace."""
        self.is_locked = False
        """The run itself has locked the job's row: nobody can take it, nor renew it, meanwhile."""
        self.cut_off: Callable[[], None] | None = None
        """Raises ``TaskInterrupted`` in the code of an atomic run, once it has begun and until its end."""

    @property
    def is_cancelled(self) -> bool:
        return self.is_lost or self.is_stopping


class Running:
    """What the code of a task or handler may ask about its own run. Safe from any thread that it starts."""

    __slots__ = ()

    claim: Any
    hold: Hold

    @property
    def job_id(self) -> int:
        """The id of the job: the same in every attempt, as a number."""
        return int(self.claim.id)

    @property
    def is_cancelled(self) -> bool:
        """Whether the task should come to an end: its claim was lost, its job cancelled, or the worker
        was told to stop.

        When the claim was lost, nothing that the task returns or raises counts any more. In a stop it
        has the rest of the grace to finish as if nothing were; ``raise TaskInterrupted`` puts the job
        back at once, for another worker to begin again, and never spends its last attempt.
        """
        return self.hold.is_cancelled

    @async_unsafe("It waits for the worker: use await context.aheartbeat().")
    def heartbeat(self, extend: int | float | timedelta | None = None) -> bool:
        """Hold the claim for ``extend`` (seconds or ``timedelta``, at least 1 s) from now; whether it is
        still held. Left out, it is the task's visibility timeout.

        The worker renews by itself. This is for code that keeps it from doing so, by holding the GIL,
        and to learn at once whether the claim was lost. The worker's own thread writes it, whatever
        transaction the task has open. It is waited for, for at most 2 s; when the database is away, or
        on SQLite locked by a transaction of the task, the answer is what was known before. Raises
        ``TypeError`` and ``ValueError`` for a bad duration. In async code: ``await aheartbeat()``.
        """
        wanted = None if extend is None else seconds("extend", extend, low=1)
        hold = self.hold
        is_held = (
            None if hold.is_lost or hold.is_locked or hold.renew is None else hold.renew(self.claim, wanted)
        )
        return not hold.is_lost if is_held is None else is_held

    async def aheartbeat(self, extend: int | float | timedelta | None = None) -> bool:
        """``heartbeat``, awaited."""
        return await sync_to_async(self.heartbeat)(extend)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContext(Running, AnyTaskContext):  # type: ignore[misc] # Django's is frozen, whatever its stubs say
    """The first argument of a task with ``takes_context=True``: Django's, with what the worker knows."""

    claim: Any = field(repr=False)
    hold: Hold = field(repr=False)
    record: Any = field(repr=False)

    @property
    def scheduled_for(self) -> datetime | None:
        """The boundary of its schedule that this job stands for, an aware datetime in UTC, whenever it runs
        and in every attempt. ``None`` for a job that stands for none: enqueued by code, by ``run_now``, or by
        another program."""
        moment: datetime | None = self.record.envelope.scheduled_for
        return moment

    @property
    def metadata(self) -> dict[str, Any]:
        """What the task tells of its run: a ``dict`` to change. It begins with what ``using(metadata=...)``
        said, or an earlier attempt has saved.

        Changes are kept by ``save_metadata``, and at the end of the run, however it ends.
        """
        values: dict[str, Any] = self.record.values
        return values

    @async_unsafe("It asks the database: use await context.asave_metadata().")
    def save_metadata(self) -> bool:
        """Keep ``metadata`` now, for everybody who asks for the result of the task.

        One small statement through the connection of this thread: within a transaction of the task it is
        seen after the commit, and undone by a rollback. ``False``, and nothing is kept, if the claim was
        lost. Raises ``TypeError`` and ``ValueError`` for what is not JSON, for keys that begin with ``_``,
        and for more than 16,384 characters. In async code: ``await asave_metadata()``.
        """
        is_kept: bool = self.record.save()
        return is_kept

    async def asave_metadata(self) -> bool:
        """``save_metadata``, awaited."""
        return bool(await sync_to_async(self.record.save)())


@dataclass(frozen=True, slots=True)
class JobContext(Running):
    """The first argument of a handler with ``takes_context=True``."""

    claim: Any = field(repr=False)
    hold: Hold = field(repr=False)

    @property
    def queue(self) -> str:
        return str(self.claim.queue)

    @property
    def attempt(self) -> int:
        """The number of this attempt; 1 is the first."""
        return int(self.claim.attempts)

    @property
    def max_attempts(self) -> int:
        return int(self.claim.max_attempts)
