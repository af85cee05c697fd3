"""What has finished and is not settled yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from alkstore_django.turns import Outcome


class Outcomes:
    """One outcome for each job: that of its newest attempt, and of those the one that came last.

    A job may have two when its claim was lost and taken again while its task ran, or when a task
    ended after it was to be interrupted and before that could be written.
    """

    def __init__(self) -> None:
        self._by_job: dict[int, Outcome] = {}

    def __len__(self) -> int:
        return len(self._by_job)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self._by_job.values())

    def __contains__(self, claim: Any) -> bool:
        known = self._by_job.get(claim.id)
        return known is not None and known.claim.attempts == claim.attempts

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            known = self._by_job.get(outcome.claim.id)
            if known is None or known.claim.attempts <= outcome.claim.attempts:
                self._by_job[outcome.claim.id] = outcome

    def drop(self, claims: Iterable[Any]) -> None:
        for claim in claims:
            if claim in self:
                del self._by_job[claim.id]

    def clear(self) -> None:
        self._by_job.clear()
