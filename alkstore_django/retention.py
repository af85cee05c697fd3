"""What is kept for how long, and what is over by now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from asgiref.sync import sync_to_async

from .conf import settings
from .models import Job, PruningManager, alias
from .values import duration


class Ends(StrEnum):
    """By what rows of a kind are over."""

    EXPIRY = "expiry"
    """Each has an end of its own."""

    AGE = "age"
    """All have the same time, from when they were written (dead letters: from when the job died)."""

    ORPHAN = "orphan"
    """What they belong to is gone."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is kept of one kind of rows.

    ``age`` is in seconds, where ``ends`` is ``Ends.AGE``; ``None`` keeps all. ``setting`` is the key of
    ``ALKSTORE`` that says it, or by which new rows get their end.
    """

    kind: str
    ends: Ends
    setting: str | None = None
    age: int | None = None

    @property
    def is_kept(self) -> bool:
        """Whether nothing of it is ever deleted."""
        return self.ends == Ends.AGE and self.age is None


AGED = {"dead": "DEAD_TTL", "notifications": "NOTIFICATION_TTL", "streams": "STREAM_TTL"}
AGED |= {"inbox": "INBOX_TTL"}
"""Kinds that have an age, with its setting."""

SHARED = ("notifications", "streams")
"""Kinds of which nobody can say whose a row is."""

KINDS: dict[str, tuple[Ends, str | None]] = {
    "results": (Ends.EXPIRY, "RESULT_TTL"),
    "runs": (Ends.EXPIRY, "RESULT_TTL"),
    **{kind: (Ends.AGE, setting) for kind, setting in AGED.items()},
    "locks": (Ends.EXPIRY, None),
    "rates": (Ends.EXPIRY, None),
    "history": (Ends.ORPHAN, None),
    "metadata": (Ends.ORPHAN, None),
    "keys": (Ends.ORPHAN, None),
    "lines": (Ends.ORPHAN, None),
    "schedules": (Ends.ORPHAN, None),
    "workers": (Ends.ORPHAN, None),
    "pauses": (Ends.EXPIRY, None),
}
"""All kinds, in the order in which they are looked at: what others belong to comes before these."""


def rules(using: str | None = None, ages: Mapping[str, object] | None = None) -> list[Rule]:
    """The rule of each kind on a database, in the order of ``KINDS``.

    On SQLite other programs may have written notifications and streams: they are kept, unless the project
    itself has set an age. ``ages`` are others for this call, by kind: seconds, a ``timedelta`` or a text
    such as ``"30d"``. Raises ``ValueError`` and ``TypeError``.
    """
    given = {kind: _age(kind, value) for kind, value in (ages or {}).items()}
    is_shared = pruning(alias(using)).is_shared
    return [
        Rule(kind, ends, setting, given.get(kind, _set_age(kind, is_shared)))
        for kind, (ends, setting) in KINDS.items()
    ]


arules = sync_to_async(rules)


def chosen(using: str, only: Collection[str] = (), ages: Mapping[str, object] | None = None) -> list[Rule]:
    """The rules of these kinds, or of all. Raises ``ValueError`` for a kind that does not exist."""
    for kind in only:
        if kind not in KINDS:
            raise ValueError(f"There is no kind {kind!r}; there are {', '.join(KINDS)}.")
    return [rule for rule in rules(using, ages) if not only or rule.kind in only]


def pruning(using: str) -> PruningManager:
    return Job.pruning.db_manager(using)


def _age(kind: str, value: object) -> int:
    if kind not in AGED:
        raise ValueError(f"{kind} has no age; {', '.join(AGED)} have.")
    return duration(f"the age of {kind}", value, low=1)


def _set_age(kind: str, is_shared: bool) -> int | None:
    key = AGED.get(kind)
    if key is None or (is_shared and kind in SHARED and key not in settings.given()):
        return None
    age: int | None = getattr(settings, key)
    return age
