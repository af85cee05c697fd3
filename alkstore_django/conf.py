"""The settings of the app: one dict, ``ALKSTORE``, read when it is needed, never at import."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any

from django.conf import settings as django_settings


@dataclass(frozen=True)
class Defaults:
    """Every key of ``ALKSTORE`` with its default; durations are whole seconds."""

    IMPORTS: tuple[str, ...] = ()
    """Modules that workers and commands import besides ``tasks`` of every installed app."""

    VISIBILITY_TIMEOUT: int = 60
    """How long a claim holds without a renewal, for tasks that do not say it themselves."""

    RESULT_TTL: int | None = 7 * 24 * 3600
    """How long results and records of finished tasks are kept; ``None`` keeps them."""

    DEAD_TTL: int | None = 180 * 24 * 3600
    """How long dead letters are kept after they died, with their history; ``None`` keeps them."""

    NOTIFICATION_TTL: int | None = 7 * 24 * 3600
    """How long notifications are kept; ``None`` keeps them. On SQLite only where the project says it."""

    STREAM_TTL: int | None = None
    """How long events of streams are kept, read or not; ``None`` keeps them."""

    INBOX_TTL: int | None = 30 * 24 * 3600
    """How long the inbox knows a message that came; ``None``: for ever."""

    DOORBELL: bool = True
    """On SQLite: whether a commit that puts in a job wakes the workers, through a socket, and one that
    notifies the listeners."""

    SOCKET_DIR: str | os.PathLike[str] | None = None
    """Where those sockets are; ``None``: beside the database file, else in the runtime directory."""

    NOTIFY: bool = True
    """On PostgreSQL: whether a job that is put in wakes the workers, through ``NOTIFY``, and a notification
    the listeners."""

    SCHEDULES: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Schedules by name: the arguments of ``schedules.register``, of which ``expression`` must be there."""

    CATCH_UP_GRACE: int = 120
    """How old a boundary may be that a schedule with ``catch_up="none"`` still fires."""


_DEFAULTS = Defaults()
KEYS = tuple(each.name for each in fields(Defaults))


class Settings:
    """Attribute access to ``settings.ALKSTORE`` with the defaults filled in.

    Reads the project's settings each time, so that ``override_settings`` is seen.
    """

    def __getattr__(self, key: str) -> Any:
        if key not in KEYS:
            raise AttributeError(f"ALKSTORE has no key {key!r}; it knows {', '.join(KEYS)}.")
        return self.given().get(key, getattr(_DEFAULTS, key))

    @staticmethod
    def given() -> dict[str, Any]:
        """What the project wrote, unchecked (the system checks judge it)."""
        return getattr(django_settings, "ALKSTORE", {})


settings = Settings()
