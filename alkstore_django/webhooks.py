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

import atexit
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin

try:
    import httpx

    from . import webhook_headers
    from .webhook_transport import TROUBLE, UNREACHABLE, Transport, until
except ModuleNotFoundError as error:
    raise ImportError(f'{error}. Run pip install "alkstore-django[webhooks]".') from error

from . import __version__
from .exceptions import Retry, WebhookFailed, WebhookRefused
from .outbox import Event, Outbox, outbox
from .payloads import encode
from .values import span, whole
from .webhook_addresses import Target, addresses, target

AGAIN = {408, 409, 425, 429}
"""Answers below 500 after which another try may do better."""

MOST_READ, MOST_KEPT = 65_536, 500
"""Bytes of an answer that are read, and characters of it that are kept."""


class Webhook:
    """A receiver of events. Call it with an ``Event`` in a delivery function, or declare an ``outbox``.

    ``secret`` is one of Standard Webhooks (``whsec_`` and base64), or several while they change: each signs.
    ``timeout`` is how many seconds a step may take (to connect, to wait for an answer), and the whole
    delivery twice as many; only to look up the name of a host takes as long as it takes. ``headers`` are
    added; another host, to which a redirect leads, does not get them. Redirects are followed up to
    ``redirects`` of them, 0 by default, not from https to http; addresses that are not public are refused,
    also behind redirects, without ``allow_private``. Proxies of the environment are not used. Raises
    ``TypeError`` and ``ValueError`` for bad input.
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
        self._signers = webhook_headers.signers(secret)
        self._timeout = span("timeout", timeout, low=0.001)
        self._headers = webhook_headers.checked(headers)
        self._redirects = whole("redirects", redirects, 0)
        self._allow_private = bool(allow_private)
        self._client: httpx.Client | None = None
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"Webhook({self._target.scheme}://{self._target.authority}...)"

    def outbox(self, name: str, **options: Any) -> Outbox:
        """Declare an outbox whose events go there; ``options`` are those of ``outbox`` but for ``batch``.

        What the receiver refuses for good is a dead letter at once. What it answered, cut short, is the
        result of the job, ``alkstore_django.results.get``.
        """
        if "batch" in options:
            raise TypeError("batch is not for webhooks: a request has one event.")

        def deliver(event: Event) -> dict[str, Any]:
            return self(event)

        # Logs and system checks speak of who declares it.
        deliver.__module__ = sys._getframe(1).f_globals["__name__"]
        deliver.__qualname__ = f"Webhook.outbox({name})"
        given = {"timeout": 3 * self._timeout, "no_retry": WebhookRefused, "store_result": True, **options}
        return outbox(name, **given)(deliver)

    def close(self) -> None:
        """Close connections that are kept for the next delivery; at the end of the process by itself."""
        atexit.unregister(self.close)
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def __call__(self, event: Event) -> dict[str, Any]:
        """Deliver an event: the ``status`` and the beginning of the ``body`` of the answer.

        Raises ``WebhookRefused`` for what another try cannot mend (4xx, a redirect, a private address),
        ``Retry`` where the receiver says when to come again, else ``WebhookFailed`` (5xx, no answer).
        """
        body = encode(event.payload)
        found, deadline = self._target, time.monotonic() + 2 * self._timeout
        for left in reversed(range(self._redirects + 1)):
            answer, text = self._post(found, body, self._heading(found, event.id, body), deadline)
            if not answer.has_redirect_location:
                return self._judged(answer, text)
            if left:
                found = _followed(found, answer)
        raise WebhookRefused(f"{self!r} leads elsewhere: {answer.headers['location'][:MOST_KEPT]!r}.")

    def _post(
        self, found: Target, body: str, headers: dict[str, str], deadline: float
    ) -> tuple[httpx.Response, str]:
        error: Exception | None = None
        try:
            known = addresses(found, allow_private=self._allow_private)
            with until(deadline):
                for address in known:
                    try:
                        return self._post_to(address, found, body, headers)
                    except UNREACHABLE as failure:
                        error = failure
        except (httpx.InvalidURL, httpx.RemoteProtocolError) as failure:  # where the receiver sends us
            raise WebhookRefused(f"{self!r} leads to a URL that is none: {failure}") from failure
        except TROUBLE as failure:
            error = failure
        raise WebhookFailed(f"{self!r} could not be reached: {type(error).__name__}: {error}") from error

    def _post_to(
        self, address: str, found: Target, body: str, headers: dict[str, str]
    ) -> tuple[httpx.Response, str]:
        client, read = self._open(), b""
        client.cookies.clear()  # those of an earlier answer
        name = {"sni_hostname": found.host}
        # As it comes: a kilobyte that was compressed twice may be gigabytes.
        with client.stream(
            "POST", found.at(address), content=body, headers=headers, extensions=name
        ) as answer:
            for chunk in answer.iter_raw():
                read += chunk
                if len(read) >= MOST_READ:
                    break
        is_plain = answer.headers.get("content-encoding", "identity") == "identity"
        text = read[:MOST_READ].decode("utf-8", "replace")[:MOST_KEPT] if is_plain else ""
        return answer, text

    def _judged(self, answer: httpx.Response, text: str) -> dict[str, Any]:
        status = answer.status_code
        if answer.is_success:
            return {"status": status, "body": text}
        said = f"{self!r} answered {status}: {text}"
        if status < 500 and status not in AGAIN:
            raise WebhookRefused(said)
        wait = webhook_headers.wait(answer.headers.get("retry-after"))
        raise WebhookFailed(said) if wait is None else Retry(said, after=wait)

    def _heading(self, found: Target, event_id: str, body: str) -> dict[str, str]:
        own = self._headers if found.origin == self._target.origin else {}
        return {
            "user-agent": f"alkstore-django/{__version__}",
            **{name.lower(): value for name, value in own.items()},
            "accept-encoding": "identity",
            "content-type": "application/json",
            "host": found.authority,
            **webhook_headers.signed(event_id, body, self._signers),
        }

    def _open(self) -> httpx.Client:
        with self._opening:
            if self._client is None:
                self._client = httpx.Client(
                    transport=Transport(), timeout=self._timeout, follow_redirects=False, trust_env=False
                )
                atexit.register(self.close)
            return self._client


def _followed(found: Target, answer: httpx.Response) -> Target:
    if answer.status_code not in (307, 308):
        raise WebhookRefused(f"{answer.status_code}: a redirect that would turn the POST into a GET.")
    try:
        url = urljoin(f"{found.scheme}://{found.authority}{found.path}", answer.headers["location"])
        there = target(url)
    except ValueError as error:
        raise WebhookRefused(str(error)) from error
    if found.scheme == "https" and there.scheme == "http":
        raise WebhookRefused(
            f"{answer.status_code}: a redirect from https to http, where anybody could read it."
        )
    return there
