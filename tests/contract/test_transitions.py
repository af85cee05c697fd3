"""A scheduler that is kept alive over the days of 2026 on which clocks change, in five zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from alkstore_django import schedules
from tests.contract.scheduling import at, made

pytestmark = pytest.mark.django_db(transaction=True)

HALF_AN_HOUR = timedelta(minutes=30)

CHANGES = {
    "Europe/Berlin": [datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1)],
    "America/New_York": [datetime(2026, 3, 8, 7), datetime(2026, 11, 1, 6)],
    "Australia/Lord_Howe": [datetime(2026, 4, 4, 15), datetime(2026, 10, 3, 15, 30)],
    "America/Santiago": [datetime(2026, 4, 5, 3), datetime(2026, 9, 6, 4)],
    "Africa/Casablanca": [datetime(2026, 2, 15, 2), datetime(2026, 3, 22, 2)],
}
"""The instants, in UTC."""


@pytest.mark.parametrize(
    ("zone", "change"), [(zone, each) for zone, found in CHANGES.items() for each in found]
)
def test_over_a_change(zone: str, change: datetime) -> None:
    before = (change - timedelta(hours=26)).replace(tzinfo=UTC)
    assert {shift(zone, before), shift(zone, before + timedelta(hours=27))} != {shift(zone, before)}
    names = {
        "daily": "30 2 * * *",
        "night": "15 0,1 * * *",
        "half hours": "*/30 * * * *",
        "hours": "0 * * * *",
    }
    for name, expression in names.items():
        first = made(name, expression, timezone=zone).cron.next_after(before)  # type: ignore[union-attr]
        made(name, expression, timezone=zone, due=first)  # type: ignore[arg-type]
    fired: dict[str, list[datetime]] = {name: [] for name in names}
    for number in range(53 * 2):
        for each in schedules.tick(before + number * HALF_AN_HOUR):
            fired[each.schedule].append(each.scheduled_for)
    for name in names:
        cron = at(name).cron
        assert cron is not None and at(name).skipped == 0
        assert fired[name] == cron.upcoming(len(fired[name]), after=before)
        assert at(name).next_fire_at == cron.next_after(fired[name][-1])

    days = [moment.astimezone(ZoneInfo(zone)).date() for moment in fired["daily"]]
    assert len(days) == len(set(days)) >= 2  # one run for each day, also for that of the change
    elapsed = {(later - earlier) for earlier, later in zip(fired["hours"], fired["hours"][1:], strict=False)}
    assert elapsed <= {timedelta(hours=1), timedelta(minutes=30), timedelta(minutes=90)}


def shift(zone: str, moment: datetime) -> timedelta | None:
    return moment.astimezone(ZoneInfo(zone)).utcoffset()


def test_six_in_the_morning_stays_six() -> None:
    """Q507."""
    first = datetime(2026, 10, 24, 4, tzinfo=UTC)
    made("s", "0 6 * * *", timezone="Europe/Berlin", due=first)
    fired = []
    for hours in range(5 * 24):
        fired += [each.scheduled_for for each in schedules.tick(first + timedelta(hours=hours))]
    assert [moment.isoformat() for moment in fired] == [
        "2026-10-24T04:00:00+00:00",
        "2026-10-25T05:00:00+00:00",
        "2026-10-26T05:00:00+00:00",
        "2026-10-27T05:00:00+00:00",
        "2026-10-28T05:00:00+00:00",
    ]
