"""What tells those who wait for jobs that some may have ended."""

from __future__ import annotations

from collections.abc import Callable, Set

from django.db import connections

from alkstore_django import looks, wakes

from .base import Pace, Wake
from .listening import Listening


class PolledEnds(Wake):
    """A database that tells nobody: time to look comes soon after somebody began to wait, then ever
    later: after a tenth of the time so far, up to ``slowest`` seconds."""

    slowest = 0.25

    def __init__(self) -> None:
        self._pace = Pace(self.slowest, fastest=0.005, growth=1.1)
        self._may_have_ended = False

    def learn(self, found: bool) -> None:
        """Somebody (else) has begun to wait."""
        if found:
            self._pace.hurry()

    def arm(self) -> None:
        self._may_have_ended = False

    def pause(self) -> float:
        return self._pace.left()

    def heard(self) -> bool:
        if self._pace.left() == 0:
            self._pace.slow_down()
            self._may_have_ended = self._may_have_ended or self._asked()
        return self._may_have_ended

    def _asked(self) -> bool:
        return True


class WatchedEnds(PolledEnds):
    """SQLite says whether anybody has written, for less than a look costs."""

    interval = 5.0
    slowest = 0.1

    def __init__(self, using: str) -> None:
        super().__init__()
        self._using = using
        self._version: int | None = None

    def arm(self) -> None:
        super().arm()
        self._version = looks.data_version(self._using)

    def _asked(self) -> bool:
        return looks.data_version(self._using) != self._version


class ToldEnds(Listening):
    """PostgreSQL brings the ids of the jobs that end; ``matter`` says whether some of them do.

    An end whose commit was on its way when somebody began to wait was told to nobody: so another look
    comes soon after, and then ever later. The slowest ones find what other programs end.
    """

    fastest, slowest = 0.05, 1.0

    def __init__(self, using: str, matter: Callable[[Set[int]], bool]) -> None:
        super().__init__(using)
        self._matter = matter
        self.interval = self.fastest

    def learn(self, found: bool) -> None:
        """Somebody (else) has begun to wait."""
        if found:
            self.interval = self.fastest

    def arm(self) -> None:
        super().arm()
        self.interval = min(self.interval * 2, self.slowest)

    def close(self) -> None:
        self.let_go()  # with the session ends the lock that says that somebody listens

    def _listen(self) -> None:
        looks.listen_for_ends(self._using)
        self._session = connections[self._using].connection
        self._session.add_notify_handler(self._ring)

    def _hear(self, payload: bytes) -> None:
        ids = {int(job_id) for job_id in payload.split()}
        self._has_rung = self._has_rung or not ids or self._matter(ids)


def choose(using: str, matter: Callable[[Set[int]], bool]) -> Wake:
    """The best that the database has."""
    means = wakes.means(using)
    if means.listens:
        return ToldEnds(using, matter)
    return WatchedEnds(using) if means.watches else PolledEnds()
