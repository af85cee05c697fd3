"""What metadata may be: a ``dict`` of JSON, of bounded length. Needs no tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .envelopes import Envelope
from .exceptions import UndecodablePayload
from .payloads import decode, encode, normalised

MAX_LENGTH = 16_384
"""Characters of JSON text."""


def checked(value: object) -> dict[str, Any]:
    """A copy in JSON's own types. Raises ``TypeError`` and ``ValueError``, naming the path."""
    if not isinstance(value, Mapping):
        raise TypeError(f"metadata must be a dict, not {value!r}.")
    copy: dict[str, Any] = normalised(value, "metadata")
    for key in copy:
        if key.startswith("_"):
            raise ValueError(f"metadata has the key {key!r}: those that begin with _ are reserved.")
    length = len(encode(copy, "metadata"))
    if length > MAX_LENGTH:
        raise ValueError(f"metadata has {length} characters of JSON, more than {MAX_LENGTH}.")
    return copy


def read(text: str | bytes | None, envelope: Envelope) -> dict[str, Any]:
    """What was saved last as ``text``; if nothing was, what the job was enqueued with."""
    try:
        value = envelope.extra.get("metadata") if text is None else decode(text)
    except UndecodablePayload:
        return {}
    return dict(value) if isinstance(value, dict) else {}
