"""Moments as the commands print them."""

from __future__ import annotations

from django.utils import timezone

from alkstore_django.values import as_datetime


def moment(seconds: int) -> str:
    """Unix seconds as date and time in ``TIME_ZONE``; as they are where no date can show them."""
    found = as_datetime(seconds)
    if found is None:
        return str(seconds)
    return (timezone.localtime(found) if timezone.is_aware(found) else found).isoformat(" ")
