"""What the headers of a webhook say: the user's, our signatures, and how long a receiver wants us to wait."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from string import punctuation
from urllib.parse import quote

from standardwebhooks.webhooks import Webhook as Signer

LONGEST_WAIT = 86_400
"""Seconds: what a receiver may ask for by ``Retry-After`` at most."""

SECRET_BYTES = (24, 64)
"""Of a secret, by the specification of Standard Webhooks."""

TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of a header (RFC 9110, 5.6.2)."""

OURS = {
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
}


def checked(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Headers of the user. Raises ``TypeError`` and ``ValueError``."""
    for name, value in dict(headers or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"headers must hold strings, not {name!r}: {type(value).__name__}.")
        if not TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header.")
        if name.lower() in OURS:
            raise ValueError(f"The header {name!r} is set by the webhook itself.")
        if value != value.strip():
            raise ValueError(f"The value of the header {name!r} begins or ends with white space.")
        if not value.isascii() or not value.replace("\t", " ").isprintable():
            raise ValueError(f"The value of the header {name!r} has characters that it cannot have.")
    return dict(headers or {})


def signers(secret: str | Sequence[str] | None) -> list[Signer]:
    """One for each secret. Raises ``TypeError`` and ``ValueError``."""
    return [_signer(each) for each in ([secret] if isinstance(secret, str) else secret or ())]


def signed(event_id: str, body: str, signers: Sequence[Signer]) -> dict[str, str]:
    """The headers of Standard Webhooks. In the id what is not ASCII is quoted: receivers read headers as
    Latin-1."""
    now, said = datetime.now(UTC), quote(event_id, safe=f"{punctuation} ")
    headers = {"webhook-id": said, "webhook-timestamp": str(int(now.timestamp()))}
    if signers:
        signatures = [each.sign(said, now.replace(tzinfo=None), body) for each in signers]
        headers["webhook-signature"] = " ".join(signatures)
    return headers


def wait(said: str | None) -> int | None:
    """Seconds, from the value of ``Retry-After`` (RFC 9110, 10.2.3); ``None`` for what asks for no patience.

    One more than it says: the clock of the queue has whole seconds, and the present one has begun.
    """
    if said is None:
        return None
    if said.strip().isdecimal():
        return _from_now(int(said.strip()[:9]))
    try:
        moment = parsedate_to_datetime(said)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return _from_now(math.ceil((aware - datetime.now(UTC)).total_seconds()))
    except (ValueError, OverflowError):
        return None


def _from_now(seconds: int) -> int | None:
    return min(seconds + 1, LONGEST_WAIT) if seconds > 0 else None


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
