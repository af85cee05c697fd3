"""An outbox, the consumer of its events, and a worker that kills itself at one step of a delivery.

``ALKSTORE_STEP`` names the step; without it nobody is killed. What is killed is this very process.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from alkstore_django import event_lines, inbox, turns
from alkstore_django.models import OutboxManager
from alkstore_django.outbox import outbox
from tests.app.outboxes import forget_unless_served

BEFORE_CLAIM, AFTER_CLAIM = "before the claim", "after the claim"
BEFORE_EFFECT, IN_EFFECT, AFTER_EFFECT = "before the effect", "in its transaction", "after the effect"
BEFORE_ACK, AFTER_ACK = "before the ack", "after the ack"
IN_LINE, AFTER_LINE = "while the line moves on", "after the line has moved on"
STEPS = (BEFORE_CLAIM, AFTER_CLAIM, BEFORE_EFFECT, IN_EFFECT, AFTER_EFFECT)
STEPS += (BEFORE_ACK, AFTER_ACK, IN_LINE, AFTER_LINE)

passed = {"events": 0}


def die_at(step: str) -> None:
    """Not at the first event: the line is to be on its way."""
    if step == os.environ.get("ALKSTORE_STEP") and passed["events"] >= int(os.environ["ALKSTORE_EVENTS"]):
        os.kill(os.getpid(), signal.SIGKILL)


@outbox("effects", visibility_timeout=1, base_backoff=0)
def have_effect(event: Any) -> None:
    """The consumer: takes each event in once, with its effect."""
    passed["events"] += 1
    die_at(BEFORE_EFFECT)
    with transaction.atomic():
        if inbox.once("effects", event.id):
            Group.objects.create(name=f"{event.key} {event.payload}")
        die_at(IN_EFFECT)
    die_at(AFTER_EFFECT)


def watch() -> None:
    """Have the worker's own code pass its steps."""
    take, move_on, move = turns.take, event_lines.move_on, OutboxManager.move_on

    def watched_take(using: str, worker: str, outcomes: Any, *rest: Any) -> Any:
        die_at(BEFORE_ACK if outcomes else BEFORE_CLAIM)
        turn = take(using, worker, outcomes, *rest)
        if outcomes:
            die_at(AFTER_ACK)
        if turn.claims:
            die_at(AFTER_CLAIM)
        return turn

    def watched_move_on(*arguments: Any) -> Any:
        left = move_on(*arguments)
        die_at(AFTER_LINE)
        return left

    def watched_move(*arguments: Any, **options: Any) -> Any:
        armed = move(*arguments, **options)
        die_at(IN_LINE)
        return armed

    turns.take, event_lines.move_on = watched_take, watched_move_on
    OutboxManager.move_on = watched_move  # type: ignore[method-assign]


forget_unless_served(__name__, have_effect)
if "ALKSTORE_STEP" in os.environ:
    watch()
