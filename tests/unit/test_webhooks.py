"""``Webhook``: what is sent, what an answer means, and where it does not go. A real server on loopback."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from alkstore_django import registry, webhook_addresses, webhooks
from alkstore_django.exceptions import Retry, WebhookFailed, WebhookRefused
from alkstore_django.webhook_headers import LONGEST_WAIT
from alkstore_django.webhooks import Webhook
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
    for said, low, high in (("7", 8, 8), (" 07 ", 8, 8), ("9" * 20, LONGEST_WAIT, LONGEST_WAIT)):
        with pytest.raises(Retry) as caught:
            hook(receiver, f"/status/429/{quote(said)}")(EVENT)
        assert low <= (caught.value.after or 0) <= high
    too_far = "Mon, 01 Jan 2030 00:00:00 +99999999999999999999"
    for status, said in ((429, "soon"), (503, "-1"), (503, too_far), (503, "0")):
        with pytest.raises(WebhookFailed):
            hook(receiver, f"/status/{status}/{quote(said)}")(EVENT)


@pytest.mark.parametrize(("ahead", "low", "high"), [(90, 80, 92), (10**7, LONGEST_WAIT, LONGEST_WAIT)])
def test_retry_after_a_date(receiver: Receiver, ahead: int, low: int, high: int) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=ahead)
    path = f"/status/503/{format_datetime(moment, usegmt=True).replace(' ', '%20')}"
    with pytest.raises(Retry) as caught:
        hook(receiver, path)(EVENT)
    assert low <= (caught.value.after or 0) <= high


def test_a_date_that_has_passed_takes_no_attempts_in_a_row(receiver: Receiver) -> None:
    """The receiver's clock is behind: it wants patience, which the outbox has of its own."""
    moment = datetime.now(UTC) - timedelta(seconds=90)
    with pytest.raises(WebhookFailed):
        hook(receiver, f"/status/503/{quote(format_datetime(moment, usegmt=True))}")(EVENT)


def test_redirects(receiver: Receiver) -> None:
    with pytest.raises(WebhookRefused, match="leads elsewhere"):
        hook(receiver, "/redirect/307/there")(EVENT)
    assert hook(receiver, "/redirect/308/there", redirects=1)(EVENT)["status"] == 200
    assert [path for path, _, _ in receiver.got][-1] == "/there"
    with pytest.raises(WebhookRefused, match="leads elsewhere"):
        hook(receiver, "/redirect/307/redirect/307/there", redirects=1)(EVENT)
    with pytest.raises(WebhookRefused, match="turn the POST into a GET"):
        hook(receiver, "/redirect/302/there", redirects=1)(EVENT)


def test_what_a_redirect_is_not_told(receiver: Receiver) -> None:
    """Credentials are for whom they were given for; another port is another host."""
    thief, headers = Receiver(), {"Authorization": "Bearer x", "Cookie": "y"}
    try:
        there = quote(f"http://127.0.0.1:{thief.server_port}/steal", safe="")
        hook(receiver, f"/to/{there}", redirects=1, headers=headers, secret=SECRET)(EVENT)
    finally:
        thief.close()
    assert receiver.got[0][1]["authorization"] == "Bearer x"
    ((path, got, body),) = thief.got
    assert path == "/steal" and not {"authorization", "cookie"} & {*got}
    assert Verifier(SECRET).verify(body, got) == EVENT.payload
    hook(receiver, "/redirect/307/there", redirects=1, headers=headers)(EVENT)
    assert receiver.got[-1][1]["authorization"] == "Bearer x"


@pytest.mark.parametrize(
    "there", ["mailto:x@y", "http://a..b/", "http://", "ftp://127.0.0.1/", "http://[::1/"]
)
def test_a_redirect_to_no_url_is_refused(receiver: Receiver, there: str) -> None:
    with pytest.raises(WebhookRefused):
        hook(receiver, f"/to/{quote(there, safe='')}", redirects=1)(EVENT)


def test_no_redirect_leaves_https() -> None:
    answer: Any = SimpleNamespace(status_code=308, headers={"location": "http://example.com/"})
    with pytest.raises(WebhookRefused, match="from https to http"):
        webhooks._followed(webhook_addresses.target("https://example.com/"), answer)


@pytest.mark.parametrize("path", ["/hang", "/drip", "/early", "/heading", "/empty"])
def test_its_time_is_that_of_the_whole_delivery(receiver: Receiver, path: str) -> None:
    started = time.monotonic()
    with pytest.raises(WebhookFailed):
        hook(receiver, path, timeout=0.3)(EVENT)
    assert time.monotonic() - started < 20  # without an end otherwise


def test_addresses_share_the_time(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with many addresses, none of which takes a connection: its queue of them is full."""
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = [socket.socket() for _ in range(3)]
    for each in waiting:
        each.setblocking(False)
        each.connect_ex(full.getsockname())
    monkeypatch.setattr(webhooks, "addresses", lambda *args, **options: ["127.0.0.1"] * 250)
    started = time.monotonic()
    with pytest.raises(WebhookFailed):
        to(f"http://many.example:{full.getsockname()[1]}/", allow_private=True, timeout=0.2)(EVENT)
    assert time.monotonic() - started < 20  # of 50
    for each in [*waiting, full]:
        each.close()


def test_what_does_not_answer_has_failed(receiver: Receiver) -> None:
    with pytest.raises(WebhookFailed, match="could not be reached"):
        hook(receiver, "/reset")(EVENT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(WebhookFailed, match="could not be reached"):
            to(f"http://127.0.0.1:{free.getsockname()[1]}/", allow_private=True)(EVENT)
    with pytest.raises(WebhookFailed, match="could not be reached"):
        to("http://nowhere.invalid/")(EVENT)


def test_a_compressed_answer_is_not_unpacked(receiver: Receiver) -> None:
    """Some kilobytes may be gigabytes."""
    assert hook(receiver, "/bomb", timeout=30)(EVENT) == {"status": 200, "body": ""}
    assert receiver.got[0][1]["accept-encoding"] == "identity"


def test_the_id_of_an_outbox_with_another_alphabet(receiver: Receiver) -> None:
    """Receivers read headers as Latin-1."""
    event: Any = SimpleNamespace(id="größe, a*b-7-1764500000", payload=1)
    hook(receiver, secret=SECRET)(event)
    ((_, headers, body),) = receiver.got
    assert headers["webhook-id"] == "gr%C3%B6%C3%9Fe, a*b-7-1764500000"
    assert Verifier(SECRET).verify(body, headers) == 1


def test_an_answer_is_kept_short(receiver: Receiver) -> None:
    assert hook(receiver, "/long")(EVENT) == {"status": 200, "body": "x" * 500}


# -- addresses ------------------------------------------------------------------------------------------


def test_private_addresses_are_refused(receiver: Receiver) -> None:
    with pytest.raises(WebhookRefused, match="127.0.0.1, which is no public address"):
        to(receiver.url)(EVENT)
    assert receiver.got == []


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


def test_it_belongs_to_the_module_that_declares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    declared = Webhook("https://example.com/").outbox("orders")
    assert declared.module_path == f"{__name__}.Webhook.outbox(orders)"


def test_threads_share_a_client(receiver: Receiver) -> None:
    """Whose connections are closed with it."""
    shared, clients = hook(receiver, "/ok"), []
    threads = [threading.Thread(target=lambda: clients.append(shared._open())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(client) for client in clients}) == 1
    shared(EVENT)
    shared.close()
    assert clients[0].is_closed
