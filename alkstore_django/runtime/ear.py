"""The ear: one thread, and one connection, that hears for all who listen to a database."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

from django.db import Error, connections

from alkstore_django.hearing import Hearing, Message
from alkstore_django.logs import get_logger

from .attendant import Attendant
from .outage import Outage, may_pass
from .subscriptions import Subscription
from .wake.notices import choose

logger = get_logger("alkstore_django.notifications")


class _Outage(Outage):
    def _say_begun(self, error: Exception) -> None:
        logger.warning("Listeners cannot reach the database, and try again until they can: %s", error)

    def _say_over(self, seconds: float) -> None:
        logger.info("Listeners reach the database again after %.1f s.", seconds)


class Ear(Attendant[Subscription]):
    """Reads what is new once for all, whenever there may be something. While the database is away it tries
    again, and goes on where it was; those who have not begun to listen are told at once."""

    kind = "ear"

    def _serve(self) -> None:
        self._hearing = Hearing(self._using)
        self._has_begun = self._has_wake = False
        outage = _Outage()
        while True:
            try:
                self._hear(outage)
                return
            except Error as error:
                if not may_pass(error, self._using, had_tables=self._has_begun):
                    raise
                self._refuse(error)
                if not self._is_wanted():
                    return
                self._inbox.take()
                self._inbox.wait(outage.wait_after(error))
            finally:
                self._let_go()

    def _hear(self, outage: Outage) -> None:
        connection = connections[self._using]
        connection.ensure_connection()
        if not connection.get_autocommit():
            connection.set_autocommit(True)
        if not self._has_wake:
            self._wake = choose(self._using, self._is_listened_to)
            self._has_wake = True
        while self._is_wanted():
            self._inbox.take()
            fresh = list(self._come())
            if fresh:
                self._wake.quicken(min(guest.interval for guest in [*fresh, *self._guests.values()]))
            self._wake.arm()
            self._wake.learn(self._look(bool(fresh), outage.is_on))
            for guest in fresh:
                guest.begin()
            outage.over()
            self._pay()
            self._inbox.wait(self._wake.interval, self._wake)

    def _look(self, thoroughly: bool, was_away: bool) -> bool:
        """Give everybody what has come; whether there was anything."""
        if not self._has_begun:
            self._hearing.begin()
            self._has_begun = True
        elif was_away:
            self._hearing.check()
        has_found, is_more = False, True
        while is_more:
            listeners = self._listeners()
            messages, is_more = self._hearing.look(listeners.keys(), thoroughly=thoroughly)
            has_found = has_found or bool(messages)
            self._give(messages, listeners)
        return has_found

    def _listeners(self) -> dict[str, list[Subscription]]:
        found: dict[str, list[Subscription]] = defaultdict(list)
        for guest in list(self._guests.values()):
            if guest.has_begun:
                found[guest.channel].append(guest)
        return found

    def _give(self, messages: list[Message], listeners: dict[str, list[Subscription]]) -> None:
        for message in messages:
            for guest in listeners[message.channel]:
                guest.put(message)
        for channel in {message.channel for message in messages}:
            for guest in listeners[channel]:
                guest.tell()
                if guest.trouble is not None:
                    self.remove(guest)

    def _pay(self) -> None:
        """Read what slow listeners had no room for."""
        for guest in list(self._guests.values()):
            if guest.wants_more:
                ids = guest.owed()
                guest.pay(len(ids), self._hearing.again(ids, guest.channel))

    def _is_listened_to(self, channel: str) -> bool:
        return any(guest.channel == channel for guest in list(self._guests.values()))

    def _refuse(self, error: Exception) -> None:
        self._dismiss([guest for guest in list(self._guests.values()) if not guest.has_begun], error)

    def _dismiss(self, guests: list[Subscription], trouble: Exception | None) -> None:
        for guest in guests:
            if self._guests.pop(id(guest), None) is not None:
                guest.end(trouble)

    def _let_go(self) -> None:
        with suppress(Error, OSError):  # it may be broken
            self._wake.let_go()
        with suppress(Error):
            connections[self._using].close()


ears: dict[str, Ear] = {}
"""By database."""
