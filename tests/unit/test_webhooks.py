"""``Webhook``: what is sent, what an answer means, and where it does not go. A real server on loopback."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from alkstore_django import webhook_addresses
from alkstore_django.exceptions import Retry, WebhookFailed, WebhookRefused
from alkstore_django.webhooks import LONGEST_WAIT, Webhook
from tests.receiver import Receiver

SECRET, OLD = (f"whsec_{base64.b64encode(bytes([n]) * 32).decode()}" for n in (1, 2))
EVENT: Any = SimpleNamespace(id="orders-7-1764500000", payload={"order": [7, "é"]})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.close()


made: list[Webhook] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while made:
        made.pop().close()


def to(url: str, **options: Any) -> Webhook:
    made.append(Webhook(url, **options))
    return made[-1]


def hook(receiver: Receiver, path: str = "/", **options: Any) -> Webhook:
    return to(receiver.url + path, **{"allow_private": True, "timeout": 5, **options})


def test_what_is_sent(receiver: Receiver) -> None:
    before = int(time.time())
    sent = hook(receiver, "/a/b?c=d%20e", secret=SECRET, headers={"Authorization": "Bearer x"})
    assert sent(EVENT) == {"status": 200, "body": "thanks"}
    ((path, headers, body),) = receiver.got
    assert (path, json.loads(body)) == ("/a/b?c=d%20e", EVENT.payload)
    assert headers["host"] == f"127.0.0.1:{receiver.server_port}"
    assert (headers["content-type"], headers["authorization"]) == ("application/json", "Bearer x")
    assert headers["webhook-id"] == EVENT.id
    assert before <= int(headers["webhook-timestamp"]) <= time.time()
    assert Verifier(SECRET).verify(body, headers) == EVENT.payload


def test_no_cookies_and_no_signature_without_a_secret(receiver: Receiver) -> None:
    sent = hook(receiver)
    sent(EVENT)
    sent(EVENT)
    for _, headers, _ in receiver.got:
        assert "cookie" not in headers and "webhook-signature" not in headers


def test_several_secrets_each_sign(receiver: Receiver) -> None:
    hook(receiver, secret=[SECRET, OLD])(EVENT)
    ((_, headers, body),) = receiver.got
    assert headers["webhook-signature"].count("v1,") == 2
    for secret in (SECRET, OLD):
        Verifier(secret).verify(body, headers)


@pytest.mark.parametrize("status", [500, 502, 503, 408, 409, 425, 429])
def test_answers_after_which_to_try_again(receiver: Receiver, status: int) -> None:
    with pytest.raises(WebhookFailed, match=f"answered {status}"):
        hook(receiver, f"/status/{status}")(EVENT)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422, 304])
def test_answers_that_are_final(receiver: Receiver, status: int) -> None:
    with pytest.raises(WebhookRefused, match=f"answered {status}"):
        hook(receiver, f"/status/{status}")(EVENT)


def test_retry_after(receiver: Receiver) -> None:
    for said, low, high in (("7", 7, 7), ("0", 0, 0), ("9" * 20, LONGEST_WAIT, LONGEST_WAIT)):
        with pytest.raises(Retry) as caught:
            hook(receiver, f"/status/429/{said}")(EVENT)
        assert low <= (caught.value.after or 0) <= high
    for status, said in ((429, "soon"), (503, "-1")):
        with pytest.raises(WebhookFailed):
            hook(receiver, f"/status/{status}/{said}")(EVENT)


@pytest.mark.parametrize(
    ("ahead", "low", "high"), [(90, 80, 91), (-90, 0, 0), (10**7, LONGEST_WAIT, LONGEST_WAIT)]
)
def test_retry_after_a_date(receiver: Receiver, ahead: int, low: int, high: int) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=ahead)
    path = f"/status/503/{format_datetime(moment, usegmt=True).replace(' ', '%20')}"
    with pytest.raises(Retry) as caught:
        hook(receiver, path)(EVENT)
    assert low <= (caught.value.after or 0) <= high


def test_redirects(receiver: Receiver) -> None:
    with pytest.raises(WebhookRefused, match="leads elsewhere"):
        hook(receiver, "/redirect/307/there")(EVENT)
    assert hook(receiver, "/redirect/308/there", redirects=1)(EVENT)["status"] == 200
    assert [path for path, _, _ in receiver.got][-1] == "/there"
    with pytest.raises(WebhookRefused, match="leads elsewhere"):
        hook(receiver, "/redirect/307/redirect/307/there", redirects=1)(EVENT)
    with pytest.raises(WebhookRefused, match="turn the POST into a GET"):
        hook(receiver, "/redirect/302/there", redirects=1)(EVENT)


def test_what_does_not_answer_has_failed(receiver: Receiver) -> None:
    for path in ("/hang", "/drip"):
        started = time.monotonic()
        with pytest.raises(WebhookFailed):
            hook(receiver, path, timeout=0.3)(EVENT)
        assert time.monotonic() - started < 20
    with pytest.raises(WebhookFailed, match="could not be reached"):
        hook(receiver, "/reset")(EVENT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(WebhookFailed, match="could not be reached"):
            to(f"http://127.0.0.1:{free.getsockname()[1]}/", allow_private=True)(EVENT)
    with pytest.raises(WebhookFailed, match="could not be reached"):
        to("http://nowhere.invalid/")(EVENT)


def test_an_answer_is_kept_short(receiver: Receiver) -> None:
    assert hook(receiver, "/long")(EVENT) == {"status": 200, "body": "x" * 500}


# -- addresses ------------------------------------------------------------------------------------------


def test_private_addresses_are_refused(receiver: Receiver) -> None:
    with pytest.raises(WebhookRefused, match="127.0.0.1, which is no public address"):
        to(receiver.url)(EVENT)
    assert receiver.got == []


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
    ],
)
def test_what_is_no_public_address(address: str) -> None:
    assert not webhook_addresses.is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8"]
)
def test_what_is_one(address: str) -> None:
    assert webhook_addresses.is_public(address)


def test_one_private_address_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, port: int, **options: Any) -> Any:
        return [(0, 0, 0, "", (address, port)) for address in ("93.184.215.14", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(WebhookRefused, match="10.0.0.1"):
        to("https://example.com/")(EVENT)


def test_a_name_is_asked_once_and_its_address_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second answer of a hostile name server might be another."""
    asked: list[str] = []
    resolve = socket.getaddrinfo

    def once(host: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(host)
        return resolve("127.0.0.1" if host == "hooks.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", once)
    to(f"http://hooks.example:{receiver.server_port}/", allow_private=True)(EVENT)
    assert asked.count("hooks.example") == 1
    assert receiver.got[0][1]["host"] == f"hooks.example:{receiver.server_port}"


# -- bad input ------------------------------------------------------------------------------------------


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
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Webhook("https://example.com", **options)
    with pytest.raises(TypeError, match="must be a string"):
        Webhook(None)  # type: ignore[arg-type]
