"""What is fired and what is skipped, for any schedule and any time that nobody was there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from alkstore_django.catching_up import CAP, NeverAgain, plan
from alkstore_django.cron import Cron

MINUTES = ("0", "*/7", "*", "30,31", "15")
HOURS = ("*", "*/2", "2", "1-3", "0,23")
CHANGES = [datetime(2026, 3, 28), datetime(2026, 10, 24), datetime(2026, 4, 4), datetime(2026, 7, 1)]
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")

expressions = st.one_of(
    st.builds("{} {} * * *".format, st.sampled_from(MINUTES), st.sampled_from(HOURS)),
    st.builds("{} {} 25-31 * sun".format, st.sampled_from(MINUTES), st.sampled_from(HOURS)),
    st.builds("@every {}m".format, st.integers(3, 500)),
)
starts = st.builds(
    lambda day, minutes: (day + timedelta(minutes=minutes)).replace(tzinfo=UTC),
    st.sampled_from(CHANGES),
    st.integers(0, 2_880),
)


def cron_of(expression: str, zone: str, foreign: bool) -> Cron:
    ours = Cron.parse(expression, zone)
    return Cron.parse_foreign(ours.canonical, zone) if foreign else ours


@settings(max_examples=150, deadline=None)
@given(expressions, st.sampled_from(ZONES), st.booleans(), starts, st.integers(0, 4_000))
@example("0 1-3 25-31 * sun", "Europe/Berlin", True, datetime(2026, 10, 24, tzinfo=UTC), 60)
def test_as_one_by_one(expression: str, zone: str, foreign: bool, start: datetime, minutes: int) -> None:
    """The counts that are reckoned are those of a walk from boundary to boundary."""
    cron = cron_of(expression, zone, foreign)
    first = cron.next_after(start)
    assert first is not None
    now = first + timedelta(minutes=minutes)
    later = [*takewhile(lambda moment: moment <= now, cron._from(first))]
    assert cron.due(first, now) == (len(later), later[-1] if later else None)

    missed = [first, *later]
    due, present = int(first.timestamp()), int(now.timestamp())
    latest = plan(cron, due, present, "latest", 0)
    assert (latest.boundaries, latest.skipped) == ([missed[-1]], len(missed) - 1)
    made_up = plan(cron, due, present, "all", 0)
    assert (made_up.boundaries, made_up.skipped) == (missed[:CAP], max(0, len(missed) - CAP))
    none = plan(cron, due, present, "none", 60)
    assert none.boundaries == ([missed[-1]] if now - missed[-1] <= timedelta(seconds=60) else [])
    assert len(none.boundaries) + none.skipped == len(missed)
    assert latest.next == none.next == cron.next_after(missed[-1]) > now
    assert made_up.next > now and (len(missed) > CAP or made_up.next == latest.next)


def test_a_boundary_that_is_none_counts_as_one() -> None:
    """Somebody has set it by hand, or the expression was another."""
    found = plan(Cron.parse("0 3 * * *"), 1_772_452_805, 1_772_452_900, "latest", 0)
    assert [moment.timestamp() for moment in found.boundaries] == [1_772_452_805]
    assert found.skipped == 0 and found.next.hour == 3


def test_no_end_of_time() -> None:
    with pytest.raises(NeverAgain):
        plan(Cron.parse_foreign("0 0 31 2 *"), 1_772_452_800, 1_772_452_800, "all", 0)
