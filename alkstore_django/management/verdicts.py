"""``Verdict``: whether there can be a schedule of an expression, and what it would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from alkstore_django.cron import Cron, CronError

from . import forecasts


@dataclass(frozen=True)
class Verdict:
    """``cron`` is there if ``error`` is not; then ``upcoming`` are instants in UTC, later than ``after``."""

    expression: str
    timezone: str
    after: datetime
    cron: Cron | None = None
    error: str = ""
    upcoming: list[datetime] = field(default_factory=list)
    why_not_portable: str | None = None

    @classmethod
    def of(cls, expression: str, timezone: str, after: datetime, n: int) -> Verdict:
        try:
            cron = Cron.parse(expression, timezone)
        except CronError as error:
            return cls(expression, timezone, after, error=str(error))
        if not cron.possible:
            never = f"{expression!r} is never due: there is no such date."
            return cls(expression, timezone, after, error=never)
        upcoming = cron.upcoming(n, after=after)
        return cls(expression, timezone, after, cron, "", upcoming, cron.why_not_portable(after))

    def document(self) -> dict[str, Any]:
        asked = {"expression": self.expression, "timezone": self.timezone}
        if self.cron is None:
            return {**asked, "valid": False, "error": self.error}
        return {
            **asked,
            "valid": True,
            "canonical": self.cron.canonical,
            "portable": self.why_not_portable is None,
            "why_not_portable": self.why_not_portable,
            "description": self.cron.describe(),
            "upcoming": [instant.isoformat() for instant in self.upcoming],
        }

    def lines(self) -> Iterator[str]:
        if self.cron is None:
            yield self.error
            return
        yield f"Due {forecasts.described(self.cron)}."
        yield f"Stored as {self.cron.canonical}"
        if self.why_not_portable is None:
            yield "Portable: honker finds the same."
        else:
            yield f"Not portable: {self.why_not_portable}."
        yield ""
        yield from forecasts.lines(self.cron, self.upcoming, self.after)
