"""What ``@task(atomic=True)`` writes: the claim and its end in the transaction of the task's own effects."""

from __future__ import annotations

from django.db import connections

from . import settling
from .models import Claim, Job, base
from .outcomes import Outcome


def begin(using: str, claim: Claim, extend: int) -> bool:
    """Open an atomic run, as the first statement of its transaction: whether the claim is still held.

    Holds it for ``extend`` seconds from now, which nobody sees before the commit, and locks its row (on
    SQLite the file) against everybody else until then.
    """
    return Job.objects.db_manager(using).heartbeat(claim, extend)


def write(using: str, outcome: Outcome) -> bool:
    """Write how a run ended in the transaction that ``begin`` opened, whatever time has passed since.

    ``False``, and nothing is written, if the claim is not there any more: the task has ended it itself.
    """
    if not Job.objects.db_manager(using).is_mine(outcome.claim):
        return False
    settling.write(using, [outcome])
    return True


def settle(using: str, outcome: Outcome) -> bool:
    """``write``, in a transaction of its own, once that of the run has ended."""
    return base.in_transaction(using, lambda: write(using, outcome))


def has_ended(using: str, error: BaseException) -> bool:
    """Whether the error has ended the whole transaction, so that nothing more can be written in it."""
    return connections[using].needs_rollback or base.is_transient(using, error)


def has_one_writer(using: str) -> bool:
    """Whether an atomic run keeps all other writers out of the database."""
    return base.has_one_writer(using)
