"""Webhooks: deliver the events of an outbox by HTTP, signed by Standard Webhooks.

::

    orders = Webhook("https://example.com/hooks", secret=settings.HOOK_SECRET).outbox("orders")
    ...
    orders.enqueue({"order": order.pk}, key=order.customer_id)

It needs ``pip install "alkstore-django[webhooks]"``. What is sent is the payload as JSON, with the headers
``webhook-id`` (the event's, the same in every attempt), ``webhook-timestamp`` and, with a secret,
``webhook-signature`` (https://www.standardwebhooks.com).
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin

try:
    import httpx
    from standardwebhooks.webhooks import Webhook as Signer
except ImportError as error:
    raise ImportError(f'{error}. Run pip install "alkstore-django[webhooks]".') from error

from . import __version__
from .exceptions import Retry, WebhookFailed, WebhookRefused
from .outbox import Event, Outbox, outbox
from .payloads import encode
from .values import span, whole
from .webhook_addresses import Target, addresses, target

AGAIN = {408, 409, 425, 429}
"""Answers below 500 after which another try may do better."""

LONGEST_WAIT = 86_400
"""Seconds: what a receiver may ask for by ``Retry-After`` at most."""

MOST_READ, MOST_KEPT = 65_536, 500
"""Bytes of an answer that are read, and characters of it that are kept."""

SECRET_BYTES = (24, 64)
"""Of a secret, by the specification of Standard Webhooks."""


class Webhook:
    """A receiver of events. Call it with an ``Event`` in a delivery function, or declare an ``outbox``.

    ``secret`` is one of Standard Webhooks (``whsec_`` and base64), or several while they change: each signs.
    ``timeout`` is how many seconds a step may take (to connect, to wait for an answer), and the whole
    delivery twice as many. ``headers`` are added. Redirects are followed up to ``redirects`` of them, 0 by
    default; addresses that are not public are refused, also behind redirects, without ``allow_private``.
    Proxies of the environment are not used. Raises ``TypeError`` and ``ValueError`` for bad input.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | Sequence[str] | None = None,
        timeout: float | timedelta = 10,
        headers: Mapping[str, str] | None = None,
        redirects: int = 0,
        allow_private: bool = False,
    ) -> None:
        self._target = target(url)
        self._signers = [_signer(each) for each in ([secret] if isinstance(secret, str) else secret or ())]
        self._timeout = span("timeout", timeout, low=0.001)
        self._headers = httpx.Headers(dict(headers or {}))
        self._redirects = whole("redirects", redirects, 0)
        self._allow_private = bool(allow_private)
        self._client: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"Webhook({self._target.scheme}://{self._target.authority}...)"

    def outbox(self, name: str, **options: Any) -> Outbox:
        """Declare an outbox whose events go there; ``options`` are those of ``outbox``.

        What the receiver refuses for good is a dead letter at once. What it answered, cut short, is the
        result of the job, ``alkstore_django.results.get``.
        """

        def deliver(event: Event) -> dict[str, Any]:
            return self(event)

        deliver.__qualname__ = f"Webhook.outbox({name})"
        given = {"timeout": 3 * self._timeout, "no_retry": WebhookRefused, "store_result": True, **options}
        return outbox(name, **given)(deliver)

    def close(self) -> None:
        """Close connections that are kept for the next delivery."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __call__(self, event: Event) -> dict[str, Any]:
        """Deliver an event: the ``status`` and the beginning of the ``body`` of the answer.

        Raises ``WebhookRefused`` for what another try cannot mend (4xx, a redirect, a private address),
        ``Retry`` where the receiver says when to come again, else ``WebhookFailed`` (5xx, no answer).
        """
        body = encode(event.payload)
        found, deadline = self._target, time.monotonic() + 2 * self._timeout
        for left in reversed(range(self._redirects + 1)):
            answer, text = self._post(found, body, self._signed(event.id, body), deadline)
            if not answer.has_redirect_location:
                return self._judged(answer, text)
            if left:
                found = _followed(found, answer)
        raise WebhookRefused(f"{self!r} leads elsewhere: {answer.headers['location'][:MOST_KEPT]!r}.")

    def _post(
        self, found: Target, body: str, headers: httpx.Headers, deadline: float
    ) -> tuple[httpx.Response, str]:
        error: Exception | None = None
        try:
            for address in addresses(found, allow_private=self._allow_private):
                try:
                    return self._post_to(address, found, body, headers, deadline)
                except (httpx.ConnectError, httpx.ConnectTimeout) as failure:
                    error = failure
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as failure:
            error = failure
        raise WebhookFailed(f"{self!r} could not be reached: {type(error).__name__}: {error}") from error

    def _post_to(
        self, address: str, found: Target, body: str, headers: httpx.Headers, deadline: float
    ) -> tuple[httpx.Response, str]:
        headers["host"] = found.authority
        client, read = self._open(), b""
        client.cookies.clear()  # those of an earlier answer
        name = {"sni_hostname": found.host}
        with client.stream(
            "POST", found.at(address), content=body, headers=headers, extensions=name
        ) as answer:
            for chunk in answer.iter_bytes():
                read += chunk
                if len(read) >= MOST_READ:
                    break
                if time.monotonic() > deadline:
                    raise WebhookFailed(f"{self!r} does not come to the end of its answer.")
        return answer, read[:MOST_READ].decode("utf-8", "replace")[:MOST_KEPT]

    def _judged(self, answer: httpx.Response, text: str) -> dict[str, Any]:
        status = answer.status_code
        if answer.is_success:
            return {"status": status, "body": text}
        said = f"{self!r} answered {status}: {text}"
        if status < 500 and status not in AGAIN:
            raise WebhookRefused(said)
        wait = _wait(answer.headers.get("retry-after"))
        raise WebhookFailed(said) if wait is None else Retry(said, after=wait)

    def _signed(self, event_id: str, body: str) -> httpx.Headers:
        now = datetime.now(UTC)
        headers = httpx.Headers({"user-agent": f"alkstore-django/{__version__}", **self._headers})
        headers["content-type"] = "application/json"
        headers["webhook-id"] = event_id
        headers["webhook-timestamp"] = str(int(now.timestamp()))
        if self._signers:
            signatures = [each.sign(event_id, now.replace(tzinfo=None), body) for each in self._signers]
            headers["webhook-signature"] = " ".join(signatures)
        return headers

    def _open(self) -> httpx.Client:
        if self._client is None:
            self._client = httpx.Client(timeout=self._timeout, follow_redirects=False, trust_env=False)
        return self._client


def _signer(secret: object) -> Signer:
    if not isinstance(secret, str):
        raise TypeError(f"A webhook secret must be a string, not {type(secret).__name__}.")
    text = secret.removeprefix("whsec_").rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError as error:
        raise ValueError("A webhook secret must be base64, such as openssl rand -base64 32 makes.") from error
    low, high = SECRET_BYTES
    if not low <= len(key) <= high:
        raise ValueError(f"A webhook secret has {low} to {high} bytes, this has {len(key)}.")
    return Signer(key)


def _followed(found: Target, answer: httpx.Response) -> Target:
    if answer.status_code not in (307, 308):
        raise WebhookRefused(f"{answer.status_code}: a redirect that would turn the POST into a GET.")
    try:
        return target(urljoin(f"{found.scheme}://{found.authority}{found.path}", answer.headers["location"]))
    except ValueError as error:
        raise WebhookRefused(str(error)) from error


def _wait(said: str | None) -> int | None:
    """Seconds, from the value of ``Retry-After`` (RFC 9110, 10.2.3); ``None`` for what says nothing."""
    if said is None:
        return None
    if said.strip().isdecimal():
        return min(int(said[:9]), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, min(int((aware - datetime.now(UTC)).total_seconds()) + 1, LONGEST_WAIT))
