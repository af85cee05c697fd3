"""Stored values as people read them. What other programs wrote may be anything, and must show anyway."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.timezone import is_aware, localtime
from django.utils.translation import gettext as _

from alkstore_django.envelopes import ENVELOPE, task_name
from alkstore_django.exceptions import UndecodablePayload
from alkstore_django.payloads import decode
from alkstore_django.values import as_datetime

HEAD = 1_000
"""Characters of a long text that a list reads."""

PAGE = 100_000
"""Characters of a long text that a page shows."""

LINE = 120
"""Characters of an error in a list."""

_NAME = re.compile(rf'\s*{{\s*"{ENVELOPE}"\s*:\s*{{\s*"task"\s*:\s*"')


def moment(value: Any) -> str | None:
    """Unix seconds as a date and time of the reader's zone and language; what is none, as it is."""
    found = as_datetime(value) if isinstance(value, int) else None
    if found is None:
        return None if value is None else str(value)
    return date_format(localtime(found) if is_aware(found) else found, "SHORT_DATETIME_FORMAT")


def instant(value: datetime | None) -> str | None:
    """An aware datetime, as ``moment`` shows it."""
    return None if value is None else moment(int(value.timestamp()))


def duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    return f"{milliseconds / 1_000:.1f} s" if milliseconds < 120_000 else f"{milliseconds // 60_000} min"


def line(text: str | None) -> str:
    """The first line of a text that says something, cut to the width of a column."""
    first = next((each for each in (text or "").splitlines() if each.strip()), "")
    return storable(Truncator(first.strip()).chars(LINE))


def task(payload: str) -> str:
    """The name of the task in a payload, of which there may be only the first ``HEAD`` characters.

    It is the stored name, whether or not there is such a task by now; empty if it is not a task.
    """
    name = task_name(payload)
    start = _NAME.match(payload)
    if not name and start and len(payload) >= HEAD:
        try:
            name, _end = json.JSONDecoder().raw_decode(payload, start.end() - 1)
        except ValueError:  # the cut went through the name
            name = f"{payload[start.end() :]}…"
    return storable(name)


def block(text: str | None) -> SafeString:
    """A text of several lines, escaped."""
    return format_html('<pre class="alkstore-text">{}</pre>', cut(text or ""))


def pretty(payload: str) -> str:
    """JSON with line breaks, or the raw text where it is not JSON."""
    pieces, size = [], 0
    try:
        for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(decode(payload)):
            pieces.append(piece)
            size += len(piece)
            if size > PAGE:  # indented, a deeply nested payload is a thousand times as long
                break
    except (UndecodablePayload, RecursionError):
        return payload
    return "".join(pieces)


def cut(text: str) -> str:
    if len(text) <= PAGE:
        return storable(text)
    return "{}\n{}".format(storable(text[:PAGE]), _("[cut here: the rest is too long for a page]"))


def storable(text: str) -> str:
    """Text without lone surrogates, which no page can be encoded with, and NUL, which no browser shows."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
