"""One log line for each step of a job, with the same facts as fields of its record (``extra``).

Never a payload: an exception's own text is all that is shown of what a task was given.
"""

from __future__ import annotations

import logging
from typing import Any

from alkstore_django.envelopes import task_name
from alkstore_django.logs import get_logger
from alkstore_django.turns import Outcome, Verdict

logger = get_logger("alkstore_django.jobs")

_LEVELS = {
    Verdict.ACK: logging.INFO,
    Verdict.DISCARD: logging.INFO,
    Verdict.RETRY: logging.WARNING,
    Verdict.INTERRUPT: logging.WARNING,
    Verdict.DEAD: logging.ERROR,
}


def started(claim: Any, task: str) -> None:
    if logger.isEnabledFor(logging.DEBUG):
        _log(logging.DEBUG, claim, task, None, "starts")


def ended(outcome: Outcome, error: BaseException | None = None) -> None:
    """``error``, where the attempt raised one, is shown with its traceback."""
    level = _LEVELS.get(outcome.verdict)
    if level is not None and logger.isEnabledFor(level):
        task = outcome.task or task_name(outcome.claim.payload)
        _log(level, outcome.claim, task, outcome.duration_ms, _what_happened(outcome), error)


def _what_happened(outcome: Outcome) -> str:
    after = "" if outcome.duration_ms is None else f" after {outcome.duration_ms} ms"
    failure = outcome.failure
    reason = f": {failure.class_path.rpartition('.')[2]}: {failure.error}" if failure else ""
    match outcome.verdict:
        case Verdict.ACK:
            return f"succeeded{after}"
        case Verdict.DISCARD:
            return f"was discarded{after}{reason}"
        case Verdict.RETRY:
            return f"failed{after}, the next one in {outcome.delay} s{reason}"
        case Verdict.INTERRUPT:
            return f"was interrupted{after}"
        case _:
            return f"failed{after}, a dead letter now{reason}"


def _log(
    level: int, claim: Any, task: str, duration_ms: int | None, what: str, error: BaseException | None = None
) -> None:
    logger.log(
        level,
        "Job id=%s queue=%s task=%s: attempt %s of %s %s",
        claim.id,
        claim.queue,
        task or "?",
        claim.attempts,
        claim.max_attempts,
        what,
        exc_info=error,
        extra={
            "job_id": claim.id,
            "queue": claim.queue,
            "task": task,
            "attempt": claim.attempts,
            "duration_ms": duration_ms,
            "worker_id": claim.worker_id,
        },
    )
