from __future__ import annotations

import os
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alkstore_django.management.flags import ago, pause, rate, size, writable_path

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


@pytest.mark.parametrize("text", ["0", "0.009", "-1", "nan", "inf"])
def test_a_pause_that_is_none(text: str) -> None:
    """A worker that looks all the time does nothing else."""
    with pytest.raises(ArgumentTypeError):
        pause(text)
    assert pause("0.01") == 0.01


def test_what_cannot_be_replaced_is_no_file(tmp_path: Path) -> None:
    """It would be renamed over, and removed at the end: of a device, that takes it from everybody."""
    pipe, old = tmp_path / "pipe", tmp_path / "old"
    os.mkfifo(pipe)
    old.touch()
    for path in (os.devnull, str(pipe), str(tmp_path), str(tmp_path / "no" / "where")):
        with pytest.raises(ArgumentTypeError, match="is not a file in a folder"):
            writable_path(path)
    assert writable_path(str(old)) == str(old) and writable_path(f"{old}-new") == f"{old}-new"


def test_where_no_zones_are_used(settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Berlin"
    assert ago("2030-01-31T08:00+00:00") == datetime(2030, 1, 31, 9)
    assert ago("2030-01-31T08:00") == datetime(2030, 1, 31, 8)
    for text in ("0001-01-01T00:00+05:00", "9999-12-31T23:00-09:00"):
        with pytest.raises(ArgumentTypeError, match="is no moment"):
            ago(text)
