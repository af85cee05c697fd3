"""Paused queues: ``alkworker`` claims nothing of them until they are resumed or the pause ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from asgiref.sync import sync_to_async

from .models import Job, QueueControl, QueueControlManager, alias
from .models.base import in_transaction
from .names import checked
from .values import duration


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue that is paused. ``since`` and ``until`` are Unix seconds by the database's clock, ``ends_in``
    seconds from the look; the latter two are ``None`` when only a resume ends it."""

    queue: str
    since: int
    by: str
    until: int | None
    ends_in: int | None


class Pausable:
    """What ``Queue`` knows of pauses. A pause concerns workers: ``claim_one`` and ``claim_batch`` go on."""

    name: str

    @property
    def using(self) -> str:
        raise NotImplementedError

    def pause(self, for_: int | float | timedelta | str | None = None, by: str = "") -> None:
        """Let ``alkworker`` claim nothing of this queue, in every process within a second.

        ``for_`` is seconds, a ``timedelta`` or a text such as ``"90s"``, ``"10m"``, ``"2h"``, ``"1d"``, of
        at least one second; without it the pause lasts until ``resume``. ``by`` says who. It replaces a
        pause that the queue has, and is a part of the caller's transaction. Running tasks go on.
        Raises ``TypeError`` or ``ValueError`` before any SQL.
        """
        pause(self.using, self.name, for_, by)

    def resume(self) -> bool:
        """End the pause; ``False`` if the queue was not paused."""
        return resume(self.using, self.name)

    def is_paused(self) -> bool:
        """Whether the queue is paused now."""
        return any(each.queue == self.name for each in paused(self.using))

    apause = sync_to_async(pause)
    aresume = sync_to_async(resume)
    ais_paused = sync_to_async(is_paused)


def pause(using: str, queue: str, for_: int | float | timedelta | str | None = None, by: str = "") -> None:
    """``Queue.pause``, for a queue of any name."""
    seconds = None if for_ is None else duration("for_", for_, low=1)
    _controls(using).pause(queue, seconds, checked("user", by) if by != "" else "")


def resume(using: str, queue: str) -> bool:
    """End the pause of a queue of any name; whether it was paused."""

    def resume() -> bool:
        resumed = _controls(using).resume(queue)
        if resumed:
            Job.objects.db_manager(using).announce()
        return resumed

    return in_transaction(using, resume)


def paused(using: str | None = None) -> list[Pause]:
    """Every paused queue, by name."""
    return [Pause(*row) for row in sorted(_controls(alias(using)).paused())]


def forget_ended(using: str) -> int:
    """Delete pauses that have ended; how many."""
    return _controls(using).forget_ended()


def count_ended(using: str) -> int:
    """How many pauses that would delete."""
    return _controls(using).count_ended()


def _controls(using: str) -> QueueControlManager:
    return QueueControl.objects.db_manager(using)
