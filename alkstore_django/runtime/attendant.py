"""An attendant: one thread, and one connection, that serves all of a process who wait for a database."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from django.db import Error, connections

from .wake.base import Wake
from .wake.inbox import Inbox

G = TypeVar("G")
A = TypeVar("A", bound="Attendant")  # type: ignore[type-arg]

PARTING = 1.0
"""Seconds to wait for the end of an attendant that nobody needs any more."""


class Attendant(Generic[G]):
    """Subclasses say in ``_serve`` what is done for the guests while there are any.

    It ends, and with it its connection, when nobody waits any more; whoever comes then goes to its
    successor. Those who come and go hold no lock: ``TaskTimedOut`` may be raised in them at any step.
    """

    kind = "attendant"

    def __init__(self, using: str) -> None:
        self._using = using
        self._pid = os.getpid()
        self._inbox = Inbox()
        self._guests: dict[int, G] = {}
        self._fresh: deque[G] = deque()
        self._wake = Wake()
        self._is_ending = False
        self._unstarted = [True]
        self._successors: dict[str, Attendant[G]] = {}
        self.thread = threading.Thread(target=self._run, name=f"alkstore-{self.kind}-{using}", daemon=True)

    @property
    def is_here(self) -> bool:
        """``False`` in a fork, which has none of its parent's threads."""
        return self._pid == os.getpid()

    def add(self, guest: G) -> bool:
        """``False`` if it is ending: the guest has to go to its successor."""
        if not self.is_here:
            return False
        self._guests[id(guest)] = guest
        self._fresh.append(guest)
        self._start()
        self.knock()
        if not self._is_ending:
            return True
        self.remove(guest)
        return False

    def knock(self) -> None:
        """There is something to do."""
        self._inbox.put(None)

    def _start(self) -> None:
        """Once, whoever comes first."""
        try:
            self._unstarted.pop()
            self.thread.start()
        except IndexError:
            return
        except BaseException:
            self._is_ending = True
            raise

    @property
    def successor(self) -> Attendant[G]:
        """The same for all who ask."""
        return self._successors.setdefault("", type(self)(self._using))

    def remove(self, guest: G) -> None:
        self._guests.pop(id(guest), None)
        if not self._guests:
            self.knock()

    def leave(self) -> None:
        """Wait until it has ended, if nobody waits any more: what comes next may want its connection gone."""
        if not self._guests:
            self.thread.join(timeout=PARTING)

    def _run(self) -> None:
        trouble: Exception | None = None
        try:
            self._serve()
        except Exception as error:
            trouble = error
        finally:
            self._is_ending = True
            self._dismiss(list(self._guests.values()), trouble)
            self._inbox.close()
            with suppress(Error):  # of a connection that is broken
                self._wake.close()
                connections.close_all()

    def _serve(self) -> None:
        """While ``_is_wanted``."""
        raise NotImplementedError

    def _dismiss(self, guests: list[G], trouble: Exception | None) -> None:
        """It cannot serve them any more."""
        raise NotImplementedError

    def _is_wanted(self) -> bool:
        """Either it sees who has just come, or they see that it is ending."""
        self._is_ending = not self._guests
        if self._is_ending and self._guests:
            self._is_ending = False
        return not self._is_ending

    def _come(self) -> Iterator[G]:
        while self._fresh:
            yield self._fresh.popleft()


def attend(attendants: dict[str, A], kind: type[A], using: str, guest: object) -> A:
    """Bring a guest to the attendant of that kind and database; which it is."""
    attendant = attendants.get(using) or attendants.setdefault(using, kind(using))
    try:
        while not attendant.add(guest):
            attendant = attendants[using] = attendant.successor  # type: ignore[assignment]
    except BaseException:
        attendant.remove(guest)
        raise
    return attendant
