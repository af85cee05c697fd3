"""What can go wrong, by name. Bad input raises ``ValueError`` or ``TypeError`` instead, at the call."""

from __future__ import annotations

from datetime import datetime, timedelta

from .values import seconds


class AlkstoreError(Exception):
    """Root of the exceptions of this app; never raised itself."""


class UndecodablePayload(AlkstoreError):
    """A stored payload is not JSON text. Its job goes to the dead letters, the raw text kept."""


class UnknownTask(AlkstoreError):
    """No task of the stored name is registered, or can be imported from an installed app."""


class UnknownOutbox(AlkstoreError, ValueError):
    """No outbox of that name is declared in a module of an installed app."""


class WebhookFailed(AlkstoreError):
    """The receiver of a webhook could not be reached, or says that it could not do it: try again."""


class WebhookRefused(AlkstoreError):
    """The receiver of a webhook refuses an event, or is refused itself: another try cannot mend it."""


class TablesMissing(AlkstoreError):
    """The tables are not there: run ``manage.py migrate`` on that database."""


class WorkerLost(AlkstoreError):
    """The worker that held the claim vanished: the claim lapsed without an answer."""


class TaskInterrupted(AlkstoreError):
    """The worker was stopped while the task ran; the task was put back.

    A task that finds ``context.is_cancelled`` may raise it, to be put back before the grace is over.
    """


class TaskTimedOut(AlkstoreError):
    """The task ran longer than its ``timeout``. Raised in its code, where that can be interrupted."""


class TaskExpired(AlkstoreError):
    """The job was not started before its ``expires_at``."""


class TaskCancelled(AlkstoreError):
    """The job was cancelled."""


class AttemptsExhausted(AlkstoreError):
    """The job had no attempt left when it was its turn."""


class JobFailed(AlkstoreError):
    """A job failed with a text and no exception: by ``fail`` or ``retry``, or by another program."""


class ResultDoesNotExist(AlkstoreError, LookupError):
    """No result of the job is kept. ``state`` says what became of the job, as ``JobInfo.state`` does:
    ``dead``, ``cancelled``, ``failed`` (discarded) or ``succeeded`` (without a value that is still kept);
    ``expired`` for a dead letter that was not started in time; ``None`` if nothing is known of it.

    ``error`` is the last error of a dead letter, else empty. ``get`` does not look at the job: ``None``.
    """

    def __init__(self, job_id: int, state: str | None = None, error: str = "") -> None:
        self.job_id, self.state, self.error = job_id, state, error
        reason = _REASONS.get(state, f"it is {state}")
        shown = f": {error.splitlines()[0]}" if error.strip() else ""
        super().__init__(f"Job id={job_id} has no result: {reason}{shown}")

    def __reduce__(self) -> tuple[type[ResultDoesNotExist], tuple[int, str | None, str]]:
        return type(self), (self.job_id, self.state, self.error)


_REASONS = {
    None: "none is kept, or none any more.",
    "dead": "it is a dead letter",
    "expired": "it expired before it was started",
    "cancelled": "it was cancelled.",
    "failed": "it was discarded.",
    "succeeded": "it has succeeded, and no value is kept, or none any more.",
}


class LockHeld(AlkstoreError):
    """Somebody else has the lock ``name``: ``holder`` is the owner, until ``expires_at`` (UTC) at the latest.

    Both are ``None`` if it was given back at that moment, again and again.
    """

    def __init__(self, name: str, holder: str | None = None, expires_at: datetime | None = None) -> None:
        super().__init__(name, holder, expires_at)
        self.name = name
        self.holder = holder
        self.expires_at = expires_at

    def __str__(self) -> str:
        if self.holder is None:
            return f"Lock {self.name!r} was always somebody else's."
        until = f" until {self.expires_at:%Y-%m-%d %H:%M:%S} UTC" if self.expires_at else ""
        return f"Lock {self.name!r} is held by {self.holder!r}{until}."


class FellBehind(AlkstoreError):
    """A listener takes notifications so slowly that more were kept for it than can be."""


class Retry(AlkstoreError):
    """Raise it in a task to be run again, within the budget of ``max_attempts``.

    ``after`` is the delay in seconds or as ``timedelta``; left out, the task's backoff decides.
    A bad one raises ``TypeError`` or ``ValueError`` where it is given.
    """

    def __init__(self, reason: str = "", *, after: int | float | timedelta | None = None) -> None:
        super().__init__(reason or "the task asked to be run again")
        self.after = None if after is None else seconds("after", after)


class Discard(AlkstoreError):
    """Raise it in a task to end it as failed, without another attempt and without a dead letter."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the task was discarded by its own code")
