"""Which of the workers of a database tidies it up: one at a time."""

from __future__ import annotations

from .models import Lock, LockManager

LOCK = "alkstore-maintenance"


class Election:
    """One worker's part in it. ``owner`` is nobody else's.

    That there is one only spares work: what two of them do at once is done once all the same.
    """

    def __init__(self, using: str, owner: str) -> None:
        self._using = using
        self._owner = owner
        self.is_held = False

    def hold(self, seconds: int) -> bool:
        """Be the one for so long from now, unless another is; whether it is so. Reads before it writes."""
        holder = self._locks().holder(LOCK)
        is_another = holder is not None and holder[0] != self._owner and holder[2] > 0
        self.is_held = not is_another and self._locks().acquire(LOCK, self._owner, seconds)
        return self.is_held

    def release(self) -> None:
        """Let another be the one at once."""
        if self.is_held:
            self.is_held = False
            self._locks().release(LOCK, self._owner)

    def _locks(self) -> LockManager:
        return Lock.objects.db_manager(self._using)
