"""What an expression will do, for people: each instant by the clocks of its zone and in UTC, and in between
the changes of those clocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from alkstore_django.cron import Cron
from alkstore_django.cron_zones import Change, next_change, zone

from .tables import table

NEAR = timedelta(days=1)
"""A change of clocks is told if it is no further from an instant."""


def described(cron: Cron) -> str:
    """``at 02:30 every day, by the clocks of Europe/Berlin``."""
    words = cron.describe()
    return (
        f"{words}, whatever clocks show" if cron.is_interval else f"{words}, by the clocks of {cron.timezone}"
    )


def lines(cron: Cron, upcoming: Sequence[datetime], after: datetime) -> Iterator[str]:
    """A table of the instants, which are in UTC and later than ``after``, or that there are none."""
    if not upcoming:
        yield f"No instant comes after {after.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z."
        return
    head, *rows = table(
        (cron.timezone, "UTC"),
        [(local(instant, cron.timezone), f"{instant:%Y-%m-%d %H:%M:%S}Z") for instant in upcoming],
        texts=2,
    ).splitlines()
    yield head
    earlier = after
    for instant, row in zip(upcoming, rows, strict=True):
        for change in changes(cron.timezone, earlier, instant):
            yield f"  {told(change)}"
        yield row
        earlier = instant


def local(instant: datetime, timezone: str) -> str:
    """``Sun 2026-03-29 03:00:00 +02:00``."""
    here = instant.astimezone(zone(timezone))
    text = here.isoformat(" ")
    return f"{here:%a} {text[:19]} {text[19:]}"


def changes(timezone: str, earlier: datetime, later: datetime) -> Iterator[Change]:
    """Those from just after one instant to the other that are near to one of them."""
    first, last = (instant.astimezone(UTC).replace(tzinfo=None) for instant in (earlier, later))
    place, at = zone(timezone), first
    while (change := next_change(place, at, min(last, first + NEAR))) is not None:
        yield change
        at = change.at
    at = max(at, last - NEAR)
    while (change := next_change(place, at, last)) is not None:
        yield change
        at = change.at


def told(change: Change) -> str:
    way = "forward" if change.forward else "back"
    return f"clocks go {way} from {change.old:%H:%M} to {change.new:%H:%M} ({change.at:%Y-%m-%d %H:%M}Z)"
