"""Outbox events with a key, in the hands of a worker: what their keys are, and that their lines move on."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from alkstore_django import event_lines, outbox
from alkstore_django.event_lines import Lined
from alkstore_django.selection import OUTBOXES
from alkstore_django.turns import Outcome, Verdict

PATIENCE = (0.02, 1.0)
"""Seconds until the next try for keys that somebody has locked: the first time, and at most."""

ENDS = (Verdict.ACK, Verdict.DEAD, Verdict.DISCARD)


class Relays:
    """Costs a worker nothing that has no outbox to serve, and one small read for each claim of events, if any
    event of that outbox has ever had a key."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._keyed: set[str] = set()
        self._held: dict[int, Lined] = {}
        self._ended: list[Lined] = []
        self._wait = PATIENCE[0]
        self._due = 0.0

    def keys_of(self, claims: Sequence[Any]) -> dict[int, str]:
        """The keys of claimed events, by the ids of their jobs."""
        events = [claim for claim in claims if self._has_keys(claim.queue)]
        if not events:
            return {}
        found = event_lines.of_jobs(self._using, [claim.id for claim in events])
        self._held |= {each.job_id: each for each in found}
        return {each.job_id: each.key for each in found}

    def settled(self, outcomes: Sequence[Outcome], lost: Sequence[Any]) -> None:
        """These are in the tables by now, but for claims that were ``lost``."""
        self.lose(lost)
        for outcome in outcomes:
            line = self._held.pop(outcome.claim.id, None)
            if line is not None and outcome.verdict in ENDS:
                self._ended.append(line)
                self._due = 0.0

    def lose(self, lost: Sequence[Any]) -> None:
        """Others have these claims by now, and see to their lines."""
        for claim in lost:
            self._held.pop(claim.id, None)

    def move_on(self) -> bool:
        """Let the lines move on in which settled events stood, as far as nobody has locked their keys;
        whether any did."""
        if not self._ended or self._due > time.monotonic():
            return False
        before = len(self._ended)
        self._ended = event_lines.move_on(self._using, self._ended, skipping())
        has_moved = len(self._ended) < before
        self._wait = PATIENCE[0] if has_moved else min(2 * self._wait, PATIENCE[1])
        self._due = time.monotonic() + self._wait
        return has_moved

    @property
    def are_busy(self) -> bool:
        """Whether lines are to move on."""
        return bool(self._ended)

    def due_in(self) -> float:
        """Seconds until the next try; infinite if there is nothing to do."""
        return max(0.0, self._due - time.monotonic()) if self._ended else math.inf

    def _has_keys(self, queue: str) -> bool:
        if not queue.startswith(OUTBOXES):
            return False
        if queue not in self._keyed and event_lines.are_used(self._using, queue):
            self._keyed.add(queue)
        return queue in self._keyed


def skipping() -> list[str]:
    """The queues of outboxes in which a dead event stands in nobody's way."""
    return [each.queue_name for each in outbox.declared() if each.skips]
