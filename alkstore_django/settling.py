"""The end of claims, written step by step in a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DatabaseError

from .failures import from_exception
from .inspection import INTERRUPTED
from .logs import get_logger
from .models import Attempt, Claim, DeadJob, End, Job, Result, Run
from .models.base import in_transaction, is_refused, let_go_after
from .outcomes import Outcome, Verdict

logger = get_logger(__name__)


def settle(using: str, worker_id: str, outcomes: Sequence[Outcome]) -> list[Claim]:
    """Write outcomes whose claims are still held, in an open transaction; return the other claims."""
    if not outcomes:
        return []
    jobs = Job.objects.db_manager(using)
    held = jobs.lock_held(worker_id, [outcome.claim.key for outcome in outcomes])
    write(using, [outcome for outcome in outcomes if outcome.claim.key in held])
    return [outcome.claim for outcome in outcomes if outcome.claim.key not in held]


def write(using: str, kept: Sequence[Outcome]) -> None:
    """Write outcomes whose rows this transaction has locked, after it judged their fences."""
    _finish(using, [outcome for outcome in kept if outcome.verdict in (Verdict.ACK, Verdict.DISCARD)])
    spent = {Verdict.RETRY: Attempt.FAILED, Verdict.DISCARD: Attempt.FAILED}
    spent[Verdict.INTERRUPT] = Attempt.INTERRUPTED
    history = []
    for outcome in kept:
        if outcome.verdict in spent:
            failure = outcome.failure or INTERRUPTED
            history.append((outcome.claim, spent[outcome.verdict], failure, outcome.duration_ms))
        _move(using, outcome)
    Attempt.objects.db_manager(using).record_each(history)


def _finish(using: str, done: Sequence[Outcome]) -> None:
    """Ack: the run, the result and the end of the live row, together."""
    status = {Verdict.ACK: Run.SUCCEEDED, Verdict.DISCARD: Run.FAILED}
    Run.objects.db_manager(using).record(
        [End(each.claim, status[each.verdict], each.task, each.duration_ms, each.ttl) for each in done]
    )
    values = [(each.claim.id, each.value, each.ttl) for each in done if each.value is not None]
    Result.objects.db_manager(using).save(values)
    Job.objects.db_manager(using).delete_locked([each.claim.id for each in done])


def _move(using: str, outcome: Outcome) -> None:
    jobs = Job.objects.db_manager(using)
    match outcome.verdict:
        case Verdict.RETRY:
            jobs.retry(outcome.claim, outcome.delay, locked=True)
        case Verdict.INTERRUPT:
            jobs.interrupt(outcome.claim, locked=True)
        case Verdict.GIVE_BACK:
            jobs.give_back(outcome.claim, locked=True)
        case Verdict.DEAD:
            dead = DeadJob.objects.db_manager(using)
            dead.bury(
                [outcome.claim],
                outcome.failure or INTERRUPTED,
                Attempt.FAILED,
                duration_ms=outcome.duration_ms,
            )


def settle_alone(using: str, worker_id: str, outcome: Outcome) -> list[Claim]:
    try:
        return in_transaction(using, lambda: settle(using, worker_id, [outcome]))
    except DatabaseError as error:
        if not is_refused(using, error):
            raise
        let_go_after(using, error)
        logger.exception(
            "The outcome of job id=%s could not be stored; it is a dead letter.", outcome.claim.id
        )
        dead = Outcome(outcome.claim, Verdict.DEAD, task=outcome.task, failure=from_exception(error))
        return in_transaction(using, lambda: settle(using, worker_id, [dead]))
