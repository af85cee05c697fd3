"""Where a call comes from: the language and time zone that were active at its enqueue.

They travel in our part of the envelope, and only if they are not the defaults of the settings:
``"language"`` is a code, empty for none; ``"time_zone"`` a name, or minutes east of UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone, translation

from .logs import get_logger

logger = get_logger(__name__)

MOST_MINUTES = 24 * 60
"""How far a zone is away from UTC, less than that."""


def present() -> dict[str, Any]:
    """What is active in this context and no default, as it is stored."""
    found: dict[str, Any] = {}
    language = translation.get_language()
    if language != settings.LANGUAGE_CODE:
        found["language"] = language or ""
    zone, default = timezone.get_current_timezone(), timezone.get_default_timezone()
    if zone is not default and (name := _name(zone)) not in (None, _name(default)):
        found["time_zone"] = name
    return found


def restored(stored: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Around the code of a task: what was active at its enqueue. Not what nobody knows here any more."""
    return _restored(stored) if "language" in stored or "time_zone" in stored else _NOTHING


_NOTHING = nullcontext()


@contextmanager
def _restored(stored: Mapping[str, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        if (language := _language(stored.get("language"))) is not None:
            stack.enter_context(translation.override(language or None))
        if (zone := _zone(stored.get("time_zone"))) is not None:
            stack.enter_context(timezone.override(zone))
        yield


def _name(zone: tzinfo) -> str | int | None:
    """``None`` for a zone that has neither a name nor one offset."""
    name = getattr(zone, "key", None)
    if isinstance(name, str):
        return name
    offset = zone.utcoffset(None)
    return None if offset is None else int(offset.total_seconds()) // 60


def _language(code: object) -> str | None:
    if code is None or code == "":
        return code
    if isinstance(code, str) and translation.check_for_language(code):
        return code
    logger.info("The language %r is not known here: the task runs in the default one.", code)
    return None


def _zone(name: object) -> tzinfo | None:
    if name is None:
        return None
    if type(name) is int and abs(name) < MOST_MINUTES:
        return timezone.get_fixed_timezone(name)
    try:
        return ZoneInfo(name)  # type: ignore[arg-type] # another type is a TypeError
    except (KeyError, ValueError, OSError, TypeError):  # unknown, no name of a zone, or a directory of them
        logger.info("The time zone %r is not known here: the task runs in the default one.", name)
        return None
