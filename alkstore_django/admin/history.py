"""The history of a job as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from alkstore_django.models import Attempt

from . import display

KINDS: dict[str, str | Promise] = {
    Attempt.FAILED: _("failed"),
    Attempt.LOST: _("worker lost"),
    Attempt.INTERRUPTED: _("interrupted"),
    Attempt.EXPIRED: _("expired"),
    Attempt.REQUEUED: _("requeued"),
    Attempt.RENUMBERED: _("renumbered"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One attempt, or something that happened between attempts."""

    row: Attempt
    what: str | Promise
    ended: str | None
    duration: str
    error: str
    traceback: str


def lines(rows: Iterable[Attempt]) -> list[Line]:
    return [
        Line(
            row=row,
            what=KINDS.get(row.kind, row.kind),
            ended=display.moment(row.ended_at),
            duration=display.duration(row.duration_ms),
            error=display.line(row.error),
            traceback=display.cut(row.traceback),
        )
        for row in rows
    ]
