"""Claims in hand, and when each must be renewed: at a third of its own visibility timeout."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from alkstore_django.logs import get_logger
from alkstore_django.signals import claim_lost

from .telling import tell

logger = get_logger("alkstore_django.worker")


@dataclass(slots=True)
class Lease:
    """``visibility`` is what the job was claimed with until its first renewal, then its task's own."""

    claim: Any
    visibility: int
    since: float
    due: float
    is_own: bool = False


class Leases:
    """The claims that this worker holds, by job id. Times are the monotonic clock's, in seconds."""

    def __init__(self, worker_id: str, own_visibility: Callable[[Any], int]) -> None:
        self._worker_id = worker_id
        self._own_visibility = own_visibility
        self._leases: dict[int, Lease] = {}
        self.locked: set[tuple[int, int]] = set()
        """Claims whose rows their own atomic runs have locked: nobody can take them, nor renew them."""

    def __len__(self) -> int:
        return len(self._leases)

    def __contains__(self, claim: Any) -> bool:
        lease = self._leases.get(claim.id)
        return lease is not None and lease.claim.attempts == claim.attempts

    def is_holding(self, claim: Any) -> bool:
        """Whether this very claim is held, and not a later one of a job that was given back: it has the same
        number of attempts."""
        lease = self._leases.get(claim.id)
        return lease is not None and lease.claim is claim

    def add(self, claim: Any, visibility: int, *, since: float) -> None:
        """``since``: when the claim began, or shortly before."""
        self._leases[claim.id] = Lease(claim, visibility, since, since + visibility / 3)

    def drop(self, claims: Iterable[Any]) -> None:
        for claim in claims:
            self.locked.discard(claim.key)
            if claim in self:
                del self._leases[claim.id]

    def lose(self, claims: Iterable[Any]) -> None:
        """Drop claims that the database no longer knows as ours, and tell, once for each."""
        for claim in claims:
            if claim in self:
                self.drop([claim])
                logger.warning(
                    "Job id=%s of queue=%s: the claim of attempt %s was lost; its outcome does not count.",
                    claim.id,
                    claim.queue,
                    claim.attempts,
                )
                told = {"job_id": claim.id, "queue": claim.queue, "attempt": claim.attempts}
                tell(claim_lost.send_robust, sender=None, worker_id=self._worker_id, **told)

    def of(self, keys: Iterable[tuple[int, int]]) -> list[Any]:
        """The claims held of these."""
        wanted = set(keys)
        return [lease.claim for lease in self._leases.values() if lease.claim.key in wanted]

    def due(self) -> dict[Any, int]:
        """Claims to renew now, and the seconds to renew each for."""
        now = time.monotonic()
        due = {}
        for lease in self._unlocked():
            if lease.due <= now:
                if not lease.is_own:
                    lease.visibility, lease.is_own = self._own_visibility(lease.claim), True
                due[lease.claim] = lease.visibility
        return due

    def renewed(self, claim: Any, extend: int) -> None:
        """The next renewal never brings the end of the claim nearer."""
        if lease := self._leases.get(claim.id):
            lease.due = time.monotonic() + max(extend / 3, extend - lease.visibility * 2 / 3)

    def next_due(self) -> float:
        """Seconds until the next renewal; infinite without leases."""
        first = min((lease.due for lease in self._unlocked()), default=math.inf)
        return max(0.0, first - time.monotonic())

    def older_than(self, seconds: float) -> list[Any]:
        """The claims that began so long ago; not those whose rows are locked, which nobody can take."""
        limit = time.monotonic() - seconds
        return [lease.claim for lease in self._unlocked() if lease.since <= limit]

    @property
    def can_lose_any(self) -> bool:
        """Whether there are any whose rows are not locked."""
        return any(True for _ in self._unlocked())

    def _unlocked(self) -> Iterator[Lease]:
        return (lease for lease in self._leases.values() if lease.claim.key not in self.locked)
