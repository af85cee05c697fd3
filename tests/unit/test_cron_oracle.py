"""A share of the comparison that ``python -m tests.cron_oracle`` makes, and all zones that there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alkstore_django.cron import Cron
from tests import cron_oracle
from tests.cron_oracle import HOUR, Findings, beside_cronsim, jumps, zones
from tests.unit.cron_model import Line, lines

EXPRESSIONS = ("*/20 * * * *", "10,50 0-4 * * *", "*/30 2-3 * * *", "@hourly")


def test_beside_cronsim_and_honker() -> None:
    found = cron_oracle.compare(2_000, seed=7)
    assert found.errors == []
    assert found.triples == 2_000
    assert found.portable > 800
    assert found.near > 1_000, "few of them were near to a change of the clocks"


def test_where_cronsim_goes_in_circles() -> None:
    instant = datetime(1996, 10, 25, 17, 45, tzinfo=UTC)
    assert cron_oracle.cronsims("* 12,15,18 * * *", "Asia/Colombo", instant) is None
    noon = datetime(1996, 10, 26, 6, tzinfo=UTC)
    assert Cron.parse("* 12,15,18 * * *", "Asia/Colombo").next_after(instant) == noon


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is a minute late, one that repeats itself and one that is not honker's."""
    honest = Cron.next_after

    def late(cron: Cron, instant: datetime) -> datetime | None:
        found = honest(cron, instant)
        return None if found is None else found + timedelta(minutes=found.hour == 2)

    monkeypatch.setattr(Cron, "next_after", late)
    errors = "\n".join(cron_oracle.compare(400, seed=7).errors)
    assert "cronsim" in errors
    assert "honker" in errors
    assert "although after" in errors


@settings(max_examples=100, deadline=None)
@given(line=lines(), zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]),
    instant=st.datetimes(datetime(2026, 3, 7), datetime(2026, 11, 8), timezones=st.just(UTC)))  # fmt: skip
def test_cronsim_finds_the_same(line: Line, zone: str, instant: datetime) -> None:
    found, cron = Findings(), Cron.parse(line.text, zone)
    if cron.possible:
        beside_cronsim(found, line, cron, instant)
    assert found.errors == []


@pytest.mark.parametrize("share", range(4))
def test_later_is_later_in_all_zones(share: int) -> None:
    """Over each change of the clocks in one year of each zone, and in another; half of them have twins."""
    seen = set()
    for number, zone in enumerate(zones()):
        if number % 4 != share:
            continue
        found = [*jumps(zone, 2026), *jumps(zone, 1970 + share * 12)]
        of_twins = (tuple(found), datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)).utcoffset())
        if of_twins in seen:
            continue
        seen.add(of_twins)
        for jump in found:
            start, end = jump.at - 2 * HOUR, jump.at + 2 * HOUR
            for expression in EXPRESSIONS:
                cron = Cron.parse(expression, zone)
                steps = cron.upcoming(20, after=start)
                assert all(earlier < later for earlier, later in pairwise([start, *steps])), (
                    zone,
                    expression,
                )
                near = [step for step in steps if step <= end]
                assert cron.due(start, end) == (len(near), near[-1] if near else None), (zone, expression)
                backwards = [end + timedelta(seconds=1)]
                while (step := cron.previous(backwards[-1])) is not None and step > start:
                    backwards.append(step)
                assert backwards[:0:-1] == near, (zone, expression)
