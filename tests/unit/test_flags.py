from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from alkstore_django.management.flags import size

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
