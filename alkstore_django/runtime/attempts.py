"""Run one claimed job: whatever happens, there is an outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from alkstore_django.exceptions import UndecodablePayload
from alkstore_django.failures import from_exception, of
from alkstore_django.logs import get_logger
from alkstore_django.tasks import option
from alkstore_django.turns import Outcome, Verdict

from . import job_log
from .execution import Assignment, Execution
from .hygiene import CleanSurroundings
from .watch import Watch

logger = get_logger("alkstore_django.worker")

E = TypeVar("E", bound=Execution)


def execute(assignment: Assignment, watch: Watch) -> Outcome:
    """Run the task of a claim. Every exception but ``KeyboardInterrupt`` becomes an outcome."""
    execution = prepared(assignment.claim, lambda: Execution(assignment, watch))
    if isinstance(execution, Outcome):
        return execution
    outcome = None
    try:
        with CleanSurroundings(execution.envelope.task):
            outcome = execution.run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return ended_badly(assignment.claim, execution.envelope.task, error, outcome)
    return outcome


def prepared(claim: Any, make: Callable[[], E]) -> E | Outcome:
    """An execution, or the outcome of a claim for which none can be made."""
    try:
        return make()
    except UndecodablePayload as error:
        outcome = Outcome(claim, Verdict.DEAD, failure=of(UndecodablePayload, str(error)))
        job_log.ended(outcome)
        return outcome
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return crashed(claim, "", error)


def ended_badly(claim: Any, task: str, error: BaseException, outcome: Outcome | None) -> Outcome:
    """What was raised around the task: by what tidies up after it, or has called it. Its outcome, if there is
    one by now, was told already, and stays."""
    if outcome is None:
        return crashed(claim, task, error)
    logger.error(
        "Job id=%s of queue=%s: what it left could not be tidied up.", claim.id, claim.queue, exc_info=error
    )
    return outcome


def crashed(claim: Any, task: str, error: BaseException) -> Outcome:
    """Not by an exception of the task, which is an outcome by now: whatever it is, the job goes on."""
    logger.error("Job id=%s of queue=%s could not be run.", claim.id, claim.queue, exc_info=error)
    verdict = Verdict.RETRY if claim.attempts < claim.max_attempts else Verdict.DEAD
    delay = option(None, "backoff").delay(claim.attempts)
    return Outcome(claim, verdict, task=task, delay=delay, failure=from_exception(error))
