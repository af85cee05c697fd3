"""A task on its way: enqueued in a queue of its own, claimed and settled as a worker does it."""

from __future__ import annotations

from typing import Any

from alkstore_django import turns
from alkstore_django.failures import from_exception
from alkstore_django.turns import Outcome, Turn, Verdict, Wish
from tests import factories
from tests.contract import tasks


def enqueue(*args: Any, **options: Any) -> Any:
    """A task in a queue of its own."""
    return tasks.send.using(queue_name=factories.queue().name, **options).enqueue(*args)


def claim(result: Any, worker: str = "w") -> Any:
    (found,) = turns.take("default", worker, [], [Wish(result.task.queue_name, 1, 60)], 1).claims
    return found


def settle(claim: Any, verdict: Verdict, **values: Any) -> None:
    outcome = Outcome(claim, verdict, task="tests.contract.tasks.send", **values)
    assert turns.take("default", claim.worker_id, [outcome], [], 0) == Turn()


def failure(text: str = "no") -> Any:
    try:
        raise ValueError(text)
    except ValueError as error:
        return from_exception(error)


def shape(result: Any) -> tuple[Any, ...]:
    times = (result.started_at, result.last_attempted_at, result.finished_at)
    return (result.status, [moment is not None for moment in times], result.attempts, len(result.errors))
