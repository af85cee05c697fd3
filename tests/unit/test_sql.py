"""The text of every statement: parameters bound, one fence, no trace of a vendor outside its file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import NotSupportedError

from alkstore_django import sql
from alkstore_django.sql import get_dialect, tables
from alkstore_django.sql.base import Dialect
from alkstore_django.sql.mysql import MariaDBDialect, MySQLDialect
from alkstore_django.sql.postgresql import PostgreSQLDialect
from alkstore_django.sql.sqlite import SQLiteDialect

DIALECTS = [SQLiteDialect(), PostgreSQLDialect(), MariaDBDialect(), MySQLDialect()]
ARGUMENTS = {
    "tasks_only": True,
    "flags": [True, False],
    "ids": "%(id0)s, %(id1)s",
    "pairs": "(id = %(id0)s AND attempts = %(n0)s)",
    "queues": "%(id0)s",
    "count": 2,
    "table": tables.RUNS,
    "names": ("job_id", "status"),
    "rows": "(%s, %s)",
    "source": "VALUES (%s, %s)",
    "column": "queue",
    "columns": ["queue"],
    "values": "",
    "update": "",
    "digests": "%(digest0)s",
    "stamps": "%(stamp0)s",
    "number": 0,
    "timed": True,
    "table_alias": "job",
    "fence": "FENCE",
    "payloads": ["{}"],
    "error": ValueError(),
    "connection": SimpleNamespace(
        isolation_level="repeatable read", settings_dict={}, connection=None, Database=re
    ),
    "entries": [],
    "wishes": [],
    "only": "",
    "of_channel": True,
    "channels": "%(c0)s",
    "within": "id = %(id0)s",
    "conditions": ["id <= %(cut)s"],
    "where": " AND died_at >= %(since)s",
    "part": "%(error)s",
    "text": "last_error",
    "since": True,
    "until": True,
    "kind": "results",
    "keys": "%(key0)s",
    "skips": "%(skip0)s",
}
TURN_LITERALS = {"ack", "give back", "renew", "succeeded", "alkstore_turn_taken"}
SETTINGS = {"enable_sort", "enable_seqscan", "off", "plan_cache_mode", "force_generic_plan"}
FENCED = ("ack", "ack_many", "retry", "heartbeat", "give_back", "interrupt", "lock_held", "renew")
SETTLING = r"(DELETE FROM _honker_live|UPDATE _honker_live SET (claim_expires_at =|state = 'pending'))"

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: type(dialect).__name__)


def is_open(parameter: inspect.Parameter) -> bool:
    """Whether it has to be given, or is an empty text otherwise."""
    return parameter.default in (inspect.Parameter.empty, "")


def statements(dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Every text of a dialect by name; methods are called with arguments that stand for any."""
    for name in dir(dialect):
        if name.startswith("_"):
            continue
        try:
            value = getattr(dialect, name)
            if callable(value):
                parameters = inspect.signature(value).parameters.values()
                value = value(**{each.name: ARGUMENTS[each.name] for each in parameters if is_open(each)})
        except NotImplementedError:
            continue
        for text in value if isinstance(value, tuple) else [value]:
            if isinstance(text, str) and re.match(r"(SELECT|INSERT|UPDATE|DELETE|WITH) ", text):
                yield name, text


@every_dialect
def test_values_are_bound(dialect: Dialect) -> None:
    found = dict(statements(dialect))
    assert len(found) > 30
    for name, text in found.items():
        assert "{" not in text.replace(tables.TASK_PREFIX, ""), name
        parameters = re.findall(r"%(?!\()(\w)|%\((\w+)\)(\w)", text)
        assert all("s" in parameter for parameter in parameters), name
        assert text.count("%") == len(parameters), name
        literals = set(re.findall(r"'([^']*)'", text)) - {
            tables.TASK_PREFIX,
            tables.LIVE,
            f'"{tables.LIVE}"',
            tables.CHANNEL,
            tables.ENDS,
            "id",
            " ",
            *("enable_sort", "enable_incremental_sort", "off"),
            *("idle_in_transaction_session_timeout", "10s", "0"),
            *("prepared", "RowExclusiveLock", tables.NOTIFICATIONS),
        }
        assert literals <= {"pending", "processing", "", *TURN_LITERALS, *SETTINGS}, name


@every_dialect
@pytest.mark.parametrize("name", FENCED)
def test_every_write_on_a_claim_is_fenced(dialect: Dialect, name: str) -> None:
    assert dialect.held == f"{dialect.mine} AND claim_expires_at >= {dialect.now}"
    text = dict(statements(dialect))[name].replace("FENCE", dialect.held)
    assert "worker_id = %(worker_id)s" in text
    assert "attempts = %(" in text
    assert "state = 'processing'" in text
    assert f"claim_expires_at >= {dialect.now}" in text


@every_dialect
def test_no_other_statement_settles_a_claim(dialect: Dialect) -> None:
    found = {name for name, text in statements(dialect) if re.match(SETTLING, text)}
    locked_before = {"delete_live", "raise_sequence"}  # their manager has locked, or made, the rows
    assert found - locked_before <= {*FENCED, "reopen"}
    assert dialect.lapsed in dict(statements(dialect))["reopen"]


@every_dialect
def test_the_clock_is_that_of_the_database(dialect: Dialect) -> None:
    for name, text in statements(dialect):
        if "run_at <=" in text or "claim_expires_at <" in text:
            assert dialect.now in text, name


def test_postgresql_compares_columns_with_a_clock_that_is_read_once() -> None:
    dialect = PostgreSQLDialect()
    assert dialect.now.startswith("(SELECT ") and dialect.precise_now.startswith("(SELECT ")
    for name, text in statements(dialect):
        bare = text.replace(dialect.now, "").replace(dialect.precise_now, "")
        assert "clock_timestamp" not in bare, name


@every_dialect
def test_names_of_indexes_fit_everywhere(dialect: Dialect) -> None:
    for text in dialect.indexes:
        name = text.split()[2]
        assert len(name) <= 30
        assert name.startswith("alkstore_")


@pytest.mark.parametrize(
    ("vendor", "is_mariadb", "expected"),
    [
        ("sqlite", None, SQLiteDialect),
        ("postgresql", None, PostgreSQLDialect),
        ("mysql", True, MariaDBDialect),
        ("mysql", False, MySQLDialect),
    ],
)
def test_a_dialect_is_found_by_the_connection(vendor: str, is_mariadb: Any, expected: type[Dialect]) -> None:
    connection = SimpleNamespace(vendor=vendor, mysql_is_mariadb=is_mariadb)
    assert type(get_dialect(connection)) is expected


def test_a_database_without_a_dialect() -> None:
    with pytest.raises(NotSupportedError, match="MariaDB and MySQL, not oracle"):
        get_dialect(SimpleNamespace(vendor="oracle"))


def test_nothing_here_executes_anything() -> None:
    for path in Path(sql.__file__).parent.glob("*.py"):
        text = path.read_text()
        assert not re.search(r"\.(cursor|execute|executemany|fetch\w*)\(", text), path.name
        if path.name != "__init__.py":
            assert "vendor ==" not in text, path.name
