"""What the values of flags mean. Each raises ``ArgumentTypeError`` for a value that means nothing."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from alkstore_django import values
from alkstore_django.inspection import is_id
from alkstore_django.values import MAX_INT

MOST = 1_000
"""Lines of a forecast."""

SHORTEST = 0.01
"""Seconds between two looks: with less a worker would do nothing else."""

UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def positive(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MAX_INT:
        raise ArgumentTypeError(f"{text} is not from 1 to {MAX_INT}")
    return value


def few(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MOST:
        raise ArgumentTypeError(f"{text} is not from 1 to {MOST}")
    return value


def job_id(text: str) -> int:
    value = int(text)
    if not is_id(value):
        raise ArgumentTypeError(f"{text} is not the id of a job")
    return value


def duration(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def pause(text: str) -> float:
    """Seconds between two looks."""
    value = duration(text)
    if value < SHORTEST:
        raise ArgumentTypeError(f"{text} is less than {SHORTEST} seconds")
    return value


def size(text: str) -> int:
    """Bytes: ``512`` and ``512MB`` are megabytes, ``1.5G`` gigabytes, of 1024 * 1024 and so on."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:([KMG])(?:i?B)?)?", text.strip(), re.ASCII | re.IGNORECASE)
    value = round(float(match[1]) * UNITS[(match[2] or "M").upper()]) if match else 0
    if not value:
        raise ArgumentTypeError(f"{text!r} is not a size such as 512 (megabytes), 800MB or 1.5G")
    return value


def writable_path(text: str) -> str:
    is_other = os.path.exists(text) and not os.path.isfile(text)  # a device, say: it would be replaced
    if is_other or not os.access(os.path.dirname(text) or ".", os.W_OK | os.X_OK):
        raise ArgumentTypeError(f"{text} is not a file in a folder that can be written to")
    return os.path.abspath(text)


def span(text: str) -> int:
    """Seconds, at least one, from ``90s``, ``10m``, ``2h`` or ``1d``."""
    try:
        return values.duration("it", text, low=1)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def delay(text: str) -> timedelta:
    """From ``90s``, ``10m``, ``2h``, ``1d``, or seconds."""
    try:
        return timedelta(seconds=values.duration("it", text))
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def ago(text: str) -> datetime | timedelta:
    """So long ago, from ``90s``, ``10m``, ``2h`` or ``1d``; or a moment, as ``point`` reads it."""
    return timedelta(seconds=span(text)) if re.fullmatch(r"\s*[0-9]+[smhd]\s*", text) else point(text)


def rate(text: str) -> float:
    """Things per second, from ``500``, ``500/s``, ``90/m`` or ``1000/h``."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(?:/ ?([smh]))?", text.strip())
    value = float(match[1]) / values.UNITS[match[2] or "s"] if match else 0.0
    if not value:
        raise ArgumentTypeError(f"{text!r} is not a rate such as 500/s, 90/m or 1000/h")
    return value


def point(text: str) -> datetime:
    """A moment, from ISO 8601; without an offset it is in ``TIME_ZONE``."""
    zone = timezone.get_default_timezone()
    try:
        found = parse_datetime(text)
        if found is not None and timezone.is_aware(found) != settings.USE_TZ:
            change = timezone.make_aware if settings.USE_TZ else timezone.make_naive
            found = change(found, zone)
    except (ValueError, OverflowError) as error:  # the latter at both ends of the calendar
        raise ArgumentTypeError(f"{text!r} is no moment: {error}") from error
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no moment such as 2030-01-31T08:00 or 2030-01-31T08:00+01:00")
    return found
