"""What a ``Webhook`` takes and refuses when it is made, and which addresses are public."""

from __future__ import annotations

from typing import Any

import pytest

from alkstore_django import webhook_addresses
from alkstore_django.webhooks import Webhook


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - it is refused
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "fec0::1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:0:127.0.0.1",
        "5f00::1",
        "3fff::1",
        "2001:db8::1",
        "ff0e::1",
    ],
)
def test_what_is_no_public_address(address: str) -> None:
    assert not webhook_addresses.is_public(address)


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_what_is_one(address: str) -> None:
    assert webhook_addresses.is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "ftp://example.com",
        "https://",
        "https:///path",
        "https://user:secret@example.com",
        "https://example.com:port/",
        "https://example.com:99999/",
        "https://[::1/",
        "https://example.com/a b",
        "https://bücher.example/",
        "https://a..b/",
        "https://.com/",
        f"https://{'a' * 64}.com/",
    ],
)
def test_broken_urls(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        Webhook(url)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "hello world, this is no base64!!", "whsec_c2hvcnQ=", "é" * 40]
)
def test_secrets_that_are_none(secret: str) -> None:
    with pytest.raises(ValueError, match="webhook secret"):
        Webhook("https://example.com", secret=[secret])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout": 0}, ValueError),
        ({"timeout": float("nan")}, ValueError),
        ({"timeout": "5"}, TypeError),
        ({"redirects": -1}, ValueError),
        ({"secret": [b"x" * 32]}, TypeError),
        ({"headers": {"X-A": "a\r\nB: c"}}, ValueError),
        ({"headers": {"X A": "a"}}, ValueError),
        ({"headers": {"": "a"}}, ValueError),
        ({"headers": {"X-A": "ä"}}, ValueError),
        ({"headers": {"Authorization": "Bearer x\n"}}, ValueError),
        ({"headers": {"Authorization": " Bearer x"}}, ValueError),
        ({"headers": {"X-A": 7}}, TypeError),
        ({"headers": {"Content-Length": "7"}}, ValueError),
        ({"headers": {"webhook-id": "7"}}, ValueError),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Webhook("https://example.com", **options)
    with pytest.raises(TypeError, match="must be a string"):
        Webhook(None)  # type: ignore[arg-type]


def test_a_request_has_one_event() -> None:
    with pytest.raises(TypeError, match="batch is not for webhooks"):
        Webhook("https://example.com/").outbox("orders", batch=10)
