"""Whether anybody would notice a signal of ``django.tasks``, and telling those who would."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from . import task_results
from .compat import signals, task_backends, task_enqueued
from .envelopes import unseal
from .exceptions import UndecodablePayload
from .models import Arrival

DJANGOS_LOGGER = logging.getLogger(signals.__name__.rpartition(".")[0])
_DJANGOS_RECEIVERS = {id(each) for each in vars(signals).values()}


def is_observed(signal: Any, level: int) -> bool:
    """Whether anybody would notice the signal, which Django's own receiver logs at that level."""
    receivers = {receiver_id for (receiver_id, _), *_ in signal.receivers}
    return DJANGOS_LOGGER.isEnabledFor(level) or not receivers <= _DJANGOS_RECEIVERS


def backend_class(alias: str) -> type[Any] | None:
    """The sender of the signals; ``None`` if the alias was taken out of ``TASKS`` since the enqueue."""
    try:
        return type(task_backends[alias])
    except task_backends.exception_class:
        return None


def tell_enqueued(jobs: Iterable[tuple[Arrival, str]], queue: str, priority: int, max_attempts: int) -> None:
    """Send ``task_enqueued`` for jobs that nobody's ``enqueue`` has put in: when each came, and its payload.
    What is no task has no such signal. What a receiver raises is logged by Django, and nothing else."""
    if not is_observed(task_enqueued, logging.DEBUG):
        return
    for arrival, text in jobs:
        try:
            envelope = unseal(text)
        except UndecodablePayload:
            continue
        task = task_results.restored(envelope, queue, priority, max_attempts)
        result = task_results.enqueued(*arrival, task, envelope)
        sender = backend_class(result.backend)
        task_enqueued.send_robust(sender, task_result=result)
