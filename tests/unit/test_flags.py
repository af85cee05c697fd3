from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

import pytest

from alkstore_django.management.flags import ago, rate, size

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("512", 512 * MB),
        ("512M", 512 * MB),
        ("512mb", 512 * MB),
        ("512 MiB", 512 * MB),
        ("1.5G", 1536 * MB),
        ("2GB", 2048 * MB),
        ("100000K", 100000 * 1024),
    ],
)
def test_a_size(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize("text", ["", "0", "-1", "M", "1T", "1e3", "1,5G", "512MBs", "0.0G", "nan", "٣"])
def test_no_size(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a size such as 512"):
        size(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("500", 500), ("500/s", 500), ("2.5 / s", 2.5), ("90/m", 1.5), ("1800/h", 0.5), (" 1/s ", 1)],
)
def test_a_rate(text: str, value: float) -> None:
    assert rate(text) == value


@pytest.mark.parametrize("text", ["", "0", "0/s", "-1", "/s", "1/d", "1e3", "nan", "inf", "fast", "٣"])
def test_no_rate(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a rate such as 500/s"):
        rate(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90s", timedelta(seconds=90)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
        ("2030-01-31T08:00+01:00", datetime(2030, 1, 31, 7, tzinfo=UTC)),
    ],
)
def test_so_long_ago_or_since_a_moment(text: str, value: object) -> None:
    assert ago(text) == value


@pytest.mark.parametrize("text", ["", "soon", "0s", "-1h", "2030-02-31", "90"])
def test_no_such_time(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        ago(text)
