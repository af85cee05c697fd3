"""Cron expressions: the values that other schedulers got wrong, what is refused, and in what words."""

from __future__ import annotations

import pickle
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from alkstore_django.cron import Cron, CronError
from tests.unit.cron_model import honker_next, honker_parse
from tests.unit.cron_values import IMPOSSIBLE, REFUSED, VALUES, instant, instants


@pytest.mark.parametrize(("expression", "zone", "start", "expected"), VALUES)
def test_values(expression: str, zone: str, start: str, expected: str) -> None:
    after = instant(start)
    wanted = instants(expected, start)
    cron = Cron.parse(expression, zone)
    assert cron.possible
    assert cron.upcoming(len(wanted), after=after) == wanted
    assert all(each.tzinfo is UTC for each in cron.upcoming(len(wanted), after=after))
    if "@every" not in expression:  # which has no phase
        assert cron.previous(wanted[0] + timedelta(seconds=1)) == wanted[0]
        assert cron.next_after(wanted[0] - timedelta(microseconds=1)) == wanted[0]
        assert [cron.previous(later) for later in wanted[1:]] == wanted[:-1]


HONKERS = [
    ("30 2 * * *", "2026-03-06T17:00", "03-07T07:30 03-08T07:00 03-09T06:30"),
    ("15,45 2 * * *", "2026-03-07T08:00", "03-08T07:00 03-09T06:15 06:45"),
    ("*/30 * * * *", "2026-03-08T05:45", "06:00 06:30 07:00 07:30"),
    ("30 1 * * *", "2026-10-31T04:00", "05:30 11-01T06:30 11-02T06:30"),
    ("*/30 * * * *", "2026-11-01T04:15", "04:30 06:00 06:30 07:00"),
    ("0 * * * *", "2026-11-01T04:15", "06:00 07:00 08:00"),
    ("*/30 * * * * *", "2026-11-01T05:59", "06:59:30 07:00"),
    ("@every 1h", "2026-11-01T04:15", "05:15 06:15 07:15"),
    ("0 0 13 * 5", "2026-04-19T12:30:05", "11-13T05:00"),
    ("5/15 * * * *", "2026-04-19T12:30:05", "13:05 14:05"),
    ("*/100 * * * *", "2026-04-19T12:30:05", "13:00"),
    ("+5 * * * *", "2026-04-19T12:30:05", "13:05"),
]


@pytest.mark.parametrize(("expression", "start", "expected"), HONKERS)
def test_values_of_foreign_rows(expression: str, start: str, expected: str) -> None:
    wanted = instants(expected, start)
    cron = Cron.parse_foreign(expression, "America/New_York")
    assert cron.upcoming(len(wanted), after=instant(start)) == wanted
    assert cron.portable


FOREIGN_ERRORS = ["MON * * * *", "0 0 * * MON", "0 0 * JAN *", "0 0 * * 7", "0 0 * * 5-1", "0 22-2 * * *",
    "0 0 L * *", "0 0 ? * *", "@daily", "@hourly", "@every 1h30m", "@every 5 m", "@every 5M", "@EVERY 5s",
    "@every -5s", "@every +5s", "@every 0s", "@every", "", "*/0 * * * *", "-5 * * * *", "*-5 * * * *",
    "1-2-3 * * * *",
    "*/2/3 * * * *", "1,2,,3 * * * *", "60 * * * *", "* * * * * * *", "* * * *", "*/4294967296 * * * *",
    "@every 99999999999999999999s", "@every 9999999999999999999d"]  # fmt: skip


@pytest.mark.parametrize("expression", FOREIGN_ERRORS)
def test_what_honker_refuses(expression: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        honker_parse(expression)
    with pytest.raises(CronError):
        Cron.parse_foreign(expression)


@pytest.mark.parametrize(("expression", "message"), REFUSED)
def test_what_is_refused_and_why(expression: Any, message: str) -> None:
    with pytest.raises(CronError) as caught:
        Cron.parse(expression)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("digits", [5, 20, 480])
def test_long_numbers(digits: int) -> None:
    for text in ("9" * digits, f"*/{'9' * digits}", f"1-{'9' * digits}"):
        with pytest.raises(CronError):
            Cron.parse(f"{text} * * * *")


@pytest.mark.parametrize(
    "zone", ["Amerca/New_York", "", "../etc/passwd", "/etc/localtime", "Europe", "a\x00b", "é", "x" * 500]
)
def test_zones_that_are_none(zone: str) -> None:
    for parse in (Cron.parse, Cron.parse_foreign):
        with pytest.raises(CronError, match="There is no time zone .*use a name such as 'Europe/Berlin'"):
            parse("* * * * *", zone)


def test_the_hosts_zone_is_none() -> None:
    with pytest.raises(CronError, match="another one on each host"):
        Cron.parse("* * * * *", "localtime")
    with pytest.raises(CronError, match="by its name"):
        Cron.parse("* * * * *", UTC)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [datetime(2026, 1, 1), None, 1_800_000_000, "2026-01-01"])
def test_instants_that_are_none(bad: Any) -> None:
    cron = Cron.parse("* * * * *")
    for method in (cron.next_after, cron.previous):
        with pytest.raises(CronError, match="An instant is a datetime with a time zone"):
            method(bad)


@pytest.mark.parametrize("expression", IMPOSSIBLE)
def test_dates_that_never_come(expression: str) -> None:
    begin = time.process_time()
    cron = Cron.parse(expression)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert not cron.possible
    assert cron.next_after(now) is None
    assert cron.previous(now) is None
    assert cron.upcoming(5) == []
    assert Cron.parse_foreign(cron.canonical).next_after(now) is None
    assert time.process_time() - begin < 0.1


ENDS = [
    datetime.min,
    datetime(1, 1, 2),
    datetime(1899, 12, 31),
    datetime(9998, 12, 30, 23),
    datetime(9999, 12, 31),
    datetime.max,
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("expression", ["* * * * *", "0 0 29 2 *", "0 0 29 2 */6", "@every 36500d"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/New_York"])
def test_the_ends_of_the_calendar(expression: str, end: datetime, zone: str) -> None:
    for cron in (Cron.parse(expression, zone), Cron.parse_foreign(expression, zone)):
        for offset in (0, 14, -12):
            moment = end.replace(tzinfo=timezone(timedelta(hours=offset)))
            later, earlier = cron.next_after(moment), cron.previous(moment)
            assert later is None or end.year < 9999
            assert earlier is None or end.year >= 1899
            cron.why_not_portable(moment)


@pytest.mark.parametrize(
    ("expression", "canonical"),
    [
        ("@daily", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("  05   9 * * Mon-Fri ", "5 9 * * 1-5"),
        ("0 9 * * *", "0 9 * * *"),
        ("0 0 9 * * *", "0 9 * * *"),
        ("*/10 * * * * *", "*/10 * * * * *"),
        ("0-59 0-23 1-31 1-12 0-7", "* * * * *"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("0,15,30,45 * * * *", "*/15 * * * *"),
        ("0 22-2 * nov-feb sat-sun", "0 0-2,22-23 * 1-2,11-12 0,6"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 9 13 * 5", "0 9 13 * 5"),
        ("0 9 1-31 * 1", "0 9 * * *"),
        ("0 9 1-29 2 1", "0 9 * 2 *"),
        ("0 9 30 2 1", "0 9 * 2 1"),  # else honker, which ANDs, would find nothing and stop
        ("@every  90s", "@every 90s"),
        ("@EVERY 120s", "@every 2m"),
        ("@every 24h", "@every 1d"),
    ],
)
def test_what_is_stored(expression: str, canonical: str) -> None:
    cron = Cron.parse(expression)
    assert cron.canonical == canonical
    assert Cron.parse(canonical).canonical == canonical
    honker_next(canonical, datetime(2026, 1, 1, tzinfo=UTC), "UTC")


SINCE = datetime(2026, 11, 30, tzinfo=UTC)
BOTH_DAYS = "honker wants both the day of month and the day of week to match, not one of them"
REPEATED = "when clocks repeat these times, honker runs in the second pass and this in"
SKIPPED = "when clocks skip these times, honker runs right after and this does not"


@pytest.mark.parametrize(
    ("expression", "zone", "why"),
    [
        ("* * * * *", "UTC", None),
        ("* * * * *", "Asia/Kolkata", None),
        ("0 12 * * *", "Europe/Berlin", None),
        ("30 2 * * mon-fri", "Europe/Berlin", None),  # clocks change on Sundays
        ("30 2 * 3 *", "Europe/Berlin", None),
        ("@every 90s", "Europe/Berlin", None),
        ("0 9 13 * 5", "UTC", BOTH_DAYS),
        ("30 2 * * *", "Europe/Berlin", f"{REPEATED} the first, as on 2027-10-31"),
        ("* * * * *", "Europe/Berlin", f"{REPEATED} both, as on 2027-10-31"),
        ("*/30 2 * 3 *", "Europe/Berlin", f"{SKIPPED}, as on 2027-03-28"),
        ("*/30 2-3 * 3 *", "Europe/Berlin", None),
    ],
)  # fmt: skip
def test_why_it_is_not_portable(expression: str, zone: str, why: str | None) -> None:
    cron = Cron.parse(expression, zone)
    assert cron.why_not_portable(SINCE) == why
    assert cron.portable == (why is None)


def test_a_second_pass_that_has_begun_is_not_over() -> None:
    """Honker has still to run what we ran in the first; the next time like this is after ten years."""
    cron = Cron.parse("30 2 25 10 *", "Europe/Berlin")
    assert cron.why_not_portable(datetime(2026, 10, 25, 1, 10, tzinfo=UTC)) is not None
    assert cron.why_not_portable(datetime(2026, 10, 27, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("@every 90s", "every 90 seconds"),
        ("@every 1d", "every day"),
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("15 10 * * * *", "second 15 of minute 10 of every hour"),
        ("0 * * * *", "minute 0 of every hour"),
        ("5/15 * * * *", "minutes 5, 20, 35 and 50 of every hour"),
        ("@daily", "at 00:00 every day"),
        ("30 2,14 * * *", "at 02:30 and 14:30 every day"),
        ("30 0 9 * * *", "at 09:00:30 every day"),
        ("0 9 * * mon-fri", "at 09:00 on Monday to Friday"),
        ("0 9 13 * 5", "at 09:00 on day 13 of the month or on Friday"),
        ("0 9 */10 * 5", "at 09:00 on days 1, 11, 21 and 31 of the month if that is Friday"),
        ("*/10 9-17 * * 1,3", "every 10 minutes of hours 9 to 17 on Monday and Wednesday"),
        ("0 0 1 jan-mar,dec *", "at 00:00 on day 1 of the month in January to March and December"),
        ("0 */2 * * *", "minute 0 of every 2 hours every day"),
        ("* 9 * 6 *", "every minute of hour 9 every day in June"),
    ],
)
def test_in_words(expression: str, words: str) -> None:
    assert Cron.parse(expression).describe() == words


def test_whole_seconds() -> None:
    start = datetime(2026, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
    for expression in ("* * * * * *", "@every 1s"):
        cron = Cron.parse(expression)
        assert cron.next_after(start) == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
        assert cron.previous(start) == datetime(2026, 1, 1, tzinfo=UTC)


def test_any_zone_of_the_instant() -> None:
    cron = Cron.parse("0 9 * * *", "Europe/Berlin")
    there = datetime(2026, 1, 1, 20, tzinfo=timezone(timedelta(hours=14)))
    assert cron.next_after(there) == datetime(2026, 1, 1, 8, tzinfo=UTC)


def test_now_is_the_default() -> None:
    before = datetime.now(UTC)
    (found,) = Cron.parse("* * * * * *").upcoming(1)
    assert before < found <= datetime.now(UTC) + timedelta(seconds=1)


def test_as_a_value() -> None:
    cron = Cron.parse("0 9 * * *", "Europe/Berlin")
    assert cron == Cron.parse("0 9 * * *", "Europe/Berlin")
    assert hash(cron) == hash(Cron.parse("0 9 * * *", "Europe/Berlin"))
    assert cron != Cron.parse("0 9 * * *", "Europe/Paris")
    assert cron != Cron.parse_foreign("0 9 * * *", "Europe/Berlin")
    assert pickle.loads(pickle.dumps(cron)).upcoming(2) == cron.upcoming(2)  # noqa: S301


@pytest.mark.parametrize("expression", ["* * * * * *", "*/5 * * * *", "30 2 * * *", "0 0 29 2 *"])
def test_it_is_quick(expression: str) -> None:
    """A scheduler asks for one instant at a time, for all of its schedules, each second."""
    cron = Cron.parse(expression, "Europe/Berlin")
    cron.upcoming(50, after=SINCE)
    begin = time.process_time()
    cron.upcoming(50, after=SINCE)
    assert time.process_time() - begin < 0.5
