"""Honker's own reading of an expression: fewer forms, the two day fields AND-ed, ``N/step`` just N."""

from __future__ import annotations

import re

from .cron_fields import FIELDS, UNITS, CronError, Every, Field, Table, Values

_ITEM = re.compile(
    r"(?:\*|\+?(?P<first>[0-9]{1,19})(?:-\+?(?P<last>[0-9]{1,19}))?)(?:/\+?(?P<step>[0-9]{1,19}))?"
)
_EVERY = re.compile(r"@every\s*(?P<count>[0-9]{1,19})(?P<unit>[smhd])")


def parse(expression: str) -> Every | Table:
    """Raises ``CronError`` for what honker refuses, too."""
    text = expression.strip()
    if text.startswith("@every"):
        found = _EVERY.fullmatch(text)
        seconds = int(found["count"]) * UNITS[found["unit"]] if found else 0
        if not 0 < seconds < 2**63:
            raise CronError(f"{text!r} is no '@every' of honker's, as '@every 90s' is.")
        return Every(seconds)
    written = text.split()
    if len(written) not in (5, 6):
        raise CronError(f"{text!r} is not of 5 fields; honker reads 5, or 6 with the second first.")
    written = ["0"] * (6 - len(written)) + written
    return Table(tuple(_values(field, part) for field, part in zip(FIELDS, written, strict=True)))


def _values(field: Field, text: str) -> Values:
    values: set[int] = set()
    for token in text.split(","):
        found = _ITEM.fullmatch(token)
        if found is None:
            raise field.error(token, "honker reads '*', numbers, ranges 'a-b', each with a '/step'.")
        first = int(found["first"] or field.low)
        last = int(found["last"] or found["first"] or field.high)
        step = int(found["step"] or 1)
        if not field.low <= first <= last <= field.high or not 0 < step < 2**32:
            raise field.error(token, f"out of range or falling; honker takes {field.low} to {field.high}.")
        values.update(range(first, last + 1, step))
    return tuple(sorted(values))
