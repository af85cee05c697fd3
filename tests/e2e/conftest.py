from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.processes import gate, journal, workers

__all__ = ["gate", "journal", "workers"]


@pytest.fixture
def bare_settings() -> Iterator[str]:
    """Settings with a database in which no migration has run."""
    if connection.vendor == "sqlite":
        yield "tests.e2e.bare"
        return
    quoted = connection.ops.quote_name(f"{connection.settings_dict['NAME']}_bare")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {quoted}")
        try:
            yield "tests.e2e.bare"
        finally:
            cursor.execute(f"DROP DATABASE {quoted}")
