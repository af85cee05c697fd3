"""What comes after an attempt that has raised something: its options and its budget decide."""

from __future__ import annotations

from typing import Any

from alkstore_django.exceptions import Discard, Retry, TaskTimedOut
from alkstore_django.tasks import option
from alkstore_django.turns import Verdict


def verdict(error: BaseException, claim: Any, task: Any) -> tuple[Verdict, int]:
    """``DISCARD``, ``DEAD``, or ``RETRY`` with the seconds until the next attempt. ``task`` is a task of any
    kind, a handler, or ``None`` if it was not found."""
    if isinstance(error, Discard):
        return Verdict.DISCARD, 0
    if not _may_be_tried_again(error, task) or claim.attempts >= claim.max_attempts:
        return Verdict.DEAD, 0
    if isinstance(error, Retry) and error.after is not None:
        return Verdict.RETRY, error.after
    return Verdict.RETRY, option(task, "backoff").delay(claim.attempts)


def _may_be_tried_again(error: BaseException, task: Any) -> bool:
    if isinstance(error, Retry):
        return True
    wanted = (TaskTimedOut, *option(task, "retry_on"))
    return isinstance(error, wanted) and not isinstance(error, option(task, "no_retry"))
