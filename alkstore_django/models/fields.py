"""Text columns that agree on every database, and that can be read whatever another program wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from alkstore_django.names import MAX_LENGTH
from alkstore_django.sql import get_dialect

if TYPE_CHECKING:
    _Field = models.Field[Any, Any]
    _CharField = models.CharField[Any, Any]
    _TextField = models.TextField[Any, Any]
else:
    _Field, _CharField, _TextField = object, models.CharField, models.TextField


class LenientText(_Field):
    """Reads text byte-safe (SQLite); holds every character and compares byte by byte (MariaDB, MySQL)."""

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        return get_dialect(compiler.connection).text(sql), params

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> str | None:
        return readable(value)

    def db_parameters(self, connection: Any) -> dict[str, Any]:
        parameters: dict[str, Any] = super().db_parameters(connection)
        parameters["collation"] = get_dialect(connection).name_collation
        return parameters


def number(value: Any) -> Any:
    """A stored number or ``None``; 0 for what is no number: SQLite keeps anything in an INTEGER column."""
    if value is None or type(value) is int:
        return value
    try:
        return max(-(2**63), min(int(value), 2**63 - 1))
    except (TypeError, ValueError, OverflowError):
        return 0


def readable(value: Any) -> str | None:
    """Stored text for showing; bytes that are not UTF-8 become ``\\xNN``."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None else str(value)


class NameField(LenientText, _CharField):
    """A queue, lock or worker name: up to 191 characters, ``A`` and ``a`` are two names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", MAX_LENGTH)
        super().__init__(*args, **kwargs)


class LenientTextField(LenientText, _TextField):
    """Payloads, results and error texts of any length."""
