"""How a job ends that nobody runs to its end."""

from __future__ import annotations

from collections.abc import Sequence

from .conf import settings
from .envelopes import task_name
from .models import Claim, End, Job, Run


def cancelled(using: str, locked: Sequence[Claim]) -> None:
    """Delete live rows that the present transaction has locked, and keep the fact."""
    ends = [End(claim, Run.CANCELLED, task_name(claim.payload), ttl=settings.RESULT_TTL) for claim in locked]
    Run.objects.db_manager(using).record(ends)
    Job.objects.db_manager(using).delete_locked([claim.id for claim in locked])
