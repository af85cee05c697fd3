"""``Ran``: one attempt that a test has run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from alkstore_django import task_results
from alkstore_django.envelopes import is_sealed
from alkstore_django.inspection import get_job
from alkstore_django.turns import Outcome, Verdict

SUCCEEDED, RETRIED, DEAD, DISCARDED, PUT_BACK, LOST = (
    "succeeded",
    "retried",
    "dead",
    "discarded",
    "put back",
    "lost",
)
_WORDS = {
    Verdict.ACK: SUCCEEDED,
    Verdict.RETRY: RETRIED,
    Verdict.DEAD: DEAD,
    Verdict.DISCARD: DISCARDED,
    Verdict.INTERRUPT: PUT_BACK,
    Verdict.GIVE_BACK: PUT_BACK,
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What was run, and how it ended.

    ``task`` is the stored name, for a handler its path. ``attempt`` begins with 1. ``ended`` is
    ``"succeeded"``, ``"retried"`` (it waits for its next attempt), ``"dead"`` (a dead letter),
    ``"discarded"``, ``"put back"``, or ``"lost"``: it was cancelled meanwhile, or taken by another.
    ``value`` is the return value as JSON has it, ``error`` the exception that it raised, if it did.
    """

    job_id: int
    queue: str
    task: str
    attempt: int
    ended: str
    value: Any = None
    error: BaseException | None = None
    using: str = field(default="default", repr=False)

    @property
    def result(self) -> Any:
        """The task's result, as ``get_result`` finds it now; ``None`` if there is none, or no task."""
        job = get_job(self.using, self.job_id)
        is_task = job is not None and is_sealed(job.raw_payload)
        return task_results.from_job(self.using, job) if job is not None and is_task else None


def ran(using: str, outcome: Outcome, execution: Any, error: BaseException | None, *, is_lost: bool) -> Ran:
    claim = outcome.claim
    return Ran(
        job_id=claim.id,
        queue=claim.queue,
        task=outcome.task,
        attempt=claim.attempts,
        ended=LOST if is_lost else _WORDS[outcome.verdict],
        value=execution.value if outcome.verdict is Verdict.ACK else None,
        error=error,
        using=using,
    )
