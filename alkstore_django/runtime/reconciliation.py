"""After an outage: what the database has done for us while its answer got lost."""

from __future__ import annotations

import time
from typing import Any

from alkstore_django import turns
from alkstore_django.dead_letters import history
from alkstore_django.inspection import get_job
from alkstore_django.turns import Outcome, Verdict

from .leases import Leases
from .outcomes import Outcomes
from .plan import Plan


def reconcile(using: str, worker_id: str, plan: Plan, leases: Leases, outcomes: Outcomes) -> None:
    """Put back claims that we never heard of, and forget what was settled: it is not lost, it is done."""
    held = {claim.key: claim for claim in turns.held_by(using, worker_id, plan.queues)}
    missing = [outcome.claim for outcome in outcomes if outcome.claim.key not in held]
    settled = [claim for claim in missing if is_settled(using, claim)]
    leases.drop(settled)
    outcomes.drop(settled)
    strays = [claim for claim in held.values() if claim not in leases]
    for claim in strays:
        leases.add(claim, plan.own_visibility(claim), since=time.monotonic())
    outcomes.add(Outcome(claim, Verdict.GIVE_BACK) for claim in strays)


def is_settled(using: str, claim: Any) -> bool:
    """Whether the end of this very attempt is written down: as a finished job, or in its history."""
    attempt = (claim.worker_id, claim.attempts)
    job = get_job(using, claim.id)
    if job is not None and job.finished_at and (job.worker_id, job.attempts) == attempt:
        return True
    return any(
        (row.worker_id, row.attempt) == attempt for row in history(using, claim.id) if row.kind != row.LOST
    )
