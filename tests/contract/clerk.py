"""What a worker's clerk asks for in a turn, for a queue of a test."""

from __future__ import annotations

from typing import Any

from alkstore_django import turns
from alkstore_django.failures import of
from alkstore_django.models import Claim
from alkstore_django.queues import Queue
from alkstore_django.turns import Outcome, Wish

NO = of(ValueError, "no")


def wish(queue: Queue, n: int = 100, **options: Any) -> Wish:
    return Wish(queue.name, n, 60, **{"tasks_only": False, **options})


def claims(queue: Queue, n: int, payload: Any = 1, **options: Any) -> list[Claim]:
    queue.enqueue_many([payload] * n, **options)
    found = turns.take("default", "w", [], [wish(queue, n)], n).claims
    assert len(found) == n
    return found


def settle(*outcomes: Outcome) -> list[Claim]:
    return turns.take("default", "w", outcomes, [], 0).lost
