"""What an idle worker asks its database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from .models import Claim, Job, Result
from .turns import Wish


@dataclass(frozen=True, slots=True)
class Look:
    """For each queue in how many seconds its first job becomes claimable, and for all of them in how
    many the first claim of anybody lapses: not above 0 where it has, infinite where it never will."""

    dues: dict[str, float] = field(default_factory=dict)
    lapses_in: float = inf

    def due_in(self, wishes: Sequence[Wish]) -> float:
        """The same for these wishes."""
        return min((self.dues.get(wish.queue, inf) for wish in wishes), default=inf)


def look(using: str, wishes: Sequence[Wish]) -> Look:
    """Look into the queues of ``wishes``: a read, which takes no lock."""
    queues = [(wish.queue, wish.tasks_only) for wish in wishes]
    rows = Job.objects.db_manager(using).look(queues)
    dues = {wish.queue: due for wish, (due, _) in zip(wishes, rows, strict=True)}
    return Look(dues, min((lapses for _, lapses in rows), default=inf))


def taken_away(using: str, worker_id: str, claims: Sequence[Claim]) -> list[Claim]:
    """Those of the worker's claims that it does not have any more, however much time is left to them."""
    found = Job.objects.db_manager(using).holders([claim.id for claim in claims])
    return [claim for claim in claims if found.get(claim.id) != (worker_id, claim.attempts)]


def live(using: str, ids: Sequence[int]) -> set[int]:
    """Those of the ids whose jobs have not ended."""
    return set(Job.objects.db_manager(using).holders(ids))


def saved(using: str, ids: Sequence[int]) -> set[int]:
    """Those of the ids that have a result, whether their jobs have ended or not."""
    return Result.objects.db_manager(using).saved(ids)


def data_version(using: str) -> int:
    """A number that changes when another connection has written to the database (SQLite)."""
    return Job.objects.db_manager(using).data_version()


def listen(using: str, on: bool) -> None:
    """Begin or end to be told, on this connection, of jobs that are put in (PostgreSQL)."""
    Job.objects.db_manager(using).listen(on)


def listen_for_ends(using: str) -> None:
    """Begin to be told, on this connection, of the ids of jobs that end, until it is closed (PostgreSQL)."""
    Job.objects.db_manager(using).listen_for_ends()
