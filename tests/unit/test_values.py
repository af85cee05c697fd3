from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from alkstore_django.values import LAST_SECOND, LONGEST, MAX_INT, as_datetime, instant, seconds, utc, whole

NAN, INF = float("nan"), float("inf")
MOMENT = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (-5, -5), (7.0, 7), (MAX_INT, MAX_INT)])
def test_whole_numbers(value: Any, expected: int) -> None:
    found = whole("priority", value, -5)
    assert (found, type(found)) == (expected, int)


@pytest.mark.parametrize("value", [True, False, "1", None, b"1", Decimal(1), Fraction(1), [], 1j])
def test_whole_numbers_of_a_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match="priority must be a whole number"):
        whole("priority", value, 0)


@pytest.mark.parametrize("value", [NAN, INF, -INF, 1.5, 2**63, 2**31, 10**400, -1, -1.0, 1e300])
def test_whole_numbers_out_of_range(value: Any) -> None:
    with pytest.raises(ValueError, match="priority must be"):
        whole("priority", value, 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (-0.0, 0),
        (60, 60),
        (0.001, 1),
        (59.5, 60),
        (timedelta(minutes=2), 120),
        (timedelta(microseconds=1), 1),
        (LONGEST, LONGEST),
    ],
)
def test_durations_are_rounded_up(value: Any, expected: int) -> None:
    found = seconds("delay", value)
    assert (found, type(found)) == (expected, int)


@pytest.mark.parametrize("value", [True, "60", None, Decimal(60), MOMENT, b"1"])
def test_durations_of_a_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match="delay must be seconds or a timedelta"):
        seconds("delay", value)


@pytest.mark.parametrize(
    "value",
    [NAN, INF, -INF, -1, -0.5, timedelta(seconds=-1), timedelta.max, 10**30, 1e300, LONGEST + 1, 2**63],
)
def test_durations_out_of_range(value: Any) -> None:
    with pytest.raises(ValueError, match="delay must be"):
        seconds("delay", value)


def test_a_duration_may_have_a_lower_limit() -> None:
    assert seconds("visibility_timeout", 1, low=1) == 1
    for value in (0, 0.5, timedelta(milliseconds=999)):
        with pytest.raises(ValueError, match="visibility_timeout must be from 1 to"):
            seconds("visibility_timeout", value, low=1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (MOMENT, 1_782_907_200),
        (MOMENT.astimezone(ZoneInfo("Asia/Kathmandu")), 1_782_907_200),
        (MOMENT.astimezone(timezone(timedelta(hours=-9, minutes=-30))), 1_782_907_200),
        (MOMENT + timedelta(microseconds=1), 1_782_907_201),
        (1_782_907_200, 1_782_907_200),
        (1_782_907_199.2, 1_782_907_200),
        (0, 0),
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (LAST_SECOND, LAST_SECOND),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), LAST_SECOND),
    ],
)
def test_instants(value: Any, expected: int) -> None:
    found = instant("run_at", value)
    assert (found, type(found)) == (expected, int)


@pytest.mark.parametrize("value", [True, "2026-07-01", None, timedelta(1), date(2026, 7, 1), Decimal(1)])
def test_instants_of_a_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match="run_at must be an aware datetime or Unix seconds"):
        instant("run_at", value)


@pytest.mark.parametrize(
    "value",
    [
        NAN,
        INF,
        -1,
        LAST_SECOND + 1,
        1_790_000_000_000,  # milliseconds
        2**63,
        10**400,
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime(1969, 12, 31, tzinfo=UTC),
    ],
)
def test_instants_out_of_range(value: Any) -> None:
    with pytest.raises(ValueError, match="run_at must"):
        instant("run_at", value)


def test_milliseconds_are_named_as_the_likely_mistake() -> None:
    with pytest.raises(ValueError, match="not milliseconds"):
        instant("run_at", 1_790_000_000_000)


@pytest.mark.parametrize("value", [datetime(2026, 7, 1), datetime.max, datetime.min])
def test_naive_instants_under_use_tz(value: datetime) -> None:
    with pytest.raises(ValueError, match="run_at must be an aware datetime while USE_TZ is on"):
        instant("run_at", value)


@override_settings(USE_TZ=False, TIME_ZONE="America/New_York")
def test_naive_instants_without_use_tz() -> None:
    assert instant("run_at", datetime(2026, 7, 1, 8)) == 1_782_907_200
    assert instant("run_at", MOMENT) == 1_782_907_200
    for value in (datetime.max, datetime.min):
        with pytest.raises(ValueError, match="run_at must lie from 1970 to 9999"):
            instant("run_at", value)


@given(st.floats() | st.integers() | st.timedeltas() | st.datetimes(timezones=st.timezones()) | st.text())
def test_whatever_passes_fits_the_columns(value: Any) -> None:
    for check, highest in ((seconds, LONGEST), (instant, LAST_SECOND)):
        try:
            found = check("value", value)
        except (TypeError, ValueError):
            continue
        assert type(found) is int
        assert 0 <= found <= highest


def test_shown_instants() -> None:
    assert as_datetime(1_782_907_200) == MOMENT
    assert [as_datetime(value) for value in (None, "high", b"\xff", NAN, INF)] == [None] * 5
    with override_settings(USE_TZ=False, TIME_ZONE="America/New_York"):
        assert as_datetime(1_782_907_200) == datetime(2026, 7, 1, 8)


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
@pytest.mark.parametrize("value", [-(2**63), -1, 0, LAST_SECOND, LAST_SECOND + 1, 2**63 - 1])
def test_stored_instants_of_any_size_can_be_shown_in_any_zone(value: int, zone: str, use_tz: bool) -> None:
    with override_settings(USE_TZ=use_tz, TIME_ZONE=zone):
        shown = as_datetime(value)
        if shown is not None and use_tz:
            assert shown.astimezone(ZoneInfo(zone)).timestamp() == value


@pytest.mark.parametrize("stored", [2**63 - 1, -(2**63), 2**56, -(2**56), LAST_SECOND + 1, -62_135_596_801])
def test_what_no_calendar_has(stored: int) -> None:
    with pytest.raises(ValueError, match=f"^{stored} is no Unix time"):
        utc(stored)
