"""Enqueue when the caller's transaction is committed, instead of in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from . import origins
from .envelopes import arguments


@dataclass(slots=True)
class Promise:
    """What ``enqueue_on_commit`` answers with."""

    result: Any = None
    """The result of the enqueue; ``None`` before the commit, after a rollback, and if it failed."""

    @property
    def is_kept(self) -> bool:
        """Whether the task is enqueued by now."""
        return self.result is not None


def enqueue(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any], using: str | None = None) -> Promise:
    """See ``AlkTask.enqueue_on_commit``."""
    backend = task.get_backend()
    backend.validate_task(task)
    # As they are now: the caller may go on to change them.
    given = arguments(args, kwargs)
    own = str(getattr(backend, "using", DEFAULT_DB_ALIAS))
    alias = using or own
    promise, origin = Promise(), origins.present()

    def keep() -> None:
        with origins.restored(origin):
            promise.result = task.get_backend().enqueue(task, *given)

    after(alias, own, keep)
    return promise


def after(alias: str, own: str, keep: Callable[[], object]) -> None:
    """Call ``keep``, which writes to the database ``own``, when the transaction on ``alias`` is committed; at
    once outside of one."""
    connection = connections[alias]
    if not connection.in_atomic_block and (alias == own or connection.get_autocommit()):
        # Not by on_commit: robust, it would log an error that the caller is here to see. With autocommit
        # off the job joins a transaction that the caller commits by hand.
        keep()
    else:
        transaction.on_commit(keep, using=alias, robust=True)
