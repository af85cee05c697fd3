"""The database's clock as an expression, for defaults that the database fills in itself."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, Func


class EpochNow(Func):
    """The current Unix time in whole seconds, by the clock of the database."""

    template = "%(expressions)s"
    arity = 0
    output_field = BigIntegerField()

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, tuple[Any, ...]]:
        from . import get_dialect

        return get_dialect(connection).now_default, ()
