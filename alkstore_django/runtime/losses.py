"""Claims in hand that are not ours any more: their jobs were cancelled, or others have them."""

from __future__ import annotations

import math
import time
from collections.abc import Container
from typing import Any

from alkstore_django import looks

from .leases import Leases

EVERY = 1.0
"""Seconds between two looks."""

YOUNG = 0.5
"""Seconds after its claim in which a job is not looked for: most have ended by then."""


class Losses:
    """Looks for the rows of the claims by their ids, while there are any that have lasted.

    A read that locks nothing, and the same on every database: nobody has to tell the worker. A renewal
    would find a loss too, but only after a third of the visibility timeout.
    """

    def __init__(self, using: str, worker_id: str, leases: Leases) -> None:
        self._using = using
        self._worker_id = worker_id
        self._leases = leases
        self._next_look = 0.0

    def look(self, ended: Container[Any]) -> list[Any]:
        """The claims that were lost, if it is time to look; those of ``ended`` are settled anyway."""
        now = time.monotonic()
        if not self._leases:
            self._next_look = now + YOUNG  # what is claimed next need not be looked for before
        if now < self._next_look:
            return []
        claims = [claim for claim in self._leases.older_than(YOUNG) if claim not in ended]
        lost = looks.taken_away(self._using, self._worker_id, claims) if claims else []
        self._next_look = time.monotonic() + (EVERY if claims else YOUNG)
        return lost

    def due_in(self) -> float:
        """Seconds until the next look; infinite without claims, or while nobody can take them."""
        if not self._leases.can_lose_any:
            return math.inf
        return max(0.0, self._next_look - time.monotonic())
