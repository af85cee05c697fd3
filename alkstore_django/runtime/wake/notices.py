"""What tells those who listen that there may be notifications."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connections

from alkstore_django import bells, hearing, wakes

from .base import Several, Wake
from .data_version import DataVersion
from .doorbell import hang
from .listening import Listening
from .polling import Polling


class Notices(Listening):
    """PostgreSQL brings the names of the channels; ``matter`` says whether somebody listens on one."""

    def __init__(self, using: str, matter: Callable[[str], bool]) -> None:
        super().__init__(using)
        self._matter = matter

    def close(self) -> None:
        self.let_go()

    def _listen(self) -> None:
        hearing.listen(self._using)
        self._session = connections[self._using].connection
        self._session.add_notify_handler(self._ring)

    def _hear(self, payload: bytes) -> None:
        self._has_rung = self._has_rung or self._matter(payload.decode(errors="replace"))


def choose(using: str, matter: Callable[[str], bool]) -> Wake:
    """The best that the database has."""
    means = wakes.means(using)
    if means.listens:
        return Notices(using, matter)
    if not means.watches:
        return Polling()
    bell = hang(means.file, means.directories, bells.EAR)
    return DataVersion(using) if bell is None else Several([bell, DataVersion(using)])
