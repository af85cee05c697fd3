"""A subscription: what the ear has heard for one listener, until that one takes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from alkstore_django.exceptions import FellBehind
from alkstore_django.hearing import Message

ROOM = 1_000
"""Notifications that are kept at most; of those beyond it only the ids are, which are read again later."""

FARTHEST = 100_000
"""Ids that are kept at most."""


class Subscription:
    """``put`` and what follows it are called by the ear's thread, ``take`` by the listener's; no lock.

    ``tell`` is called by the ear when there is something to take, and may not raise.
    """

    def __init__(self, channel: str, interval: float, tell: Callable[[], object]) -> None:
        self.channel = channel
        self.interval = interval
        self.tell = tell
        self.has_begun = False
        self.trouble: Exception | None = None
        self._messages: deque[Message] = deque()
        self._owed: deque[int] = deque()

    def take(self) -> Message | None:
        """The next one; ``None`` if it has not come yet."""
        try:
            return self._messages.popleft()
        except IndexError:
            return None

    @property
    def wants_more(self) -> bool:
        """Whether ids are kept, and there is room again."""
        return bool(self._owed) and len(self._messages) <= ROOM // 2

    def begin(self) -> None:
        """From now on it hears."""
        self.has_begun = True
        self.tell()

    def put(self, message: Message) -> None:
        if not self._owed and len(self._messages) < ROOM:
            self._messages.append(message)
            return
        self._owed.append(message.id)
        if len(self._owed) > FARTHEST:
            self.end(FellBehind(f"A listener on {self.channel!r} is {FARTHEST} notifications behind."))

    def owed(self) -> list[int]:
        """The ids that come next."""
        return list(islice(self._owed, ROOM // 2))

    def pay(self, count: int, messages: Sequence[Message]) -> None:
        """What was found of that many ids."""
        self._messages.extend(messages)
        for _ in range(count):
            self._owed.popleft()
        self.tell()

    def end(self, trouble: Exception | None) -> None:
        """Nothing comes any more."""
        self.trouble = trouble or RuntimeError("The listener's thread has ended.")
        self.tell()
