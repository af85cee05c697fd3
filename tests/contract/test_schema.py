"""The tables are honker's, with database defaults, on every database; on SQLite to the letter."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from alkstore_django.models import Attempt, DeadJob, Job, Notification, Result, ScheduledTask, StreamEvent
from alkstore_django.sql import get_dialect, tables
from tests.contract import honker
from tests.factories import ask, now

pytestmark = pytest.mark.django_db

TEXTS = {"TEXT": {"text", "varchar", "longtext", "character varying"}, "INTEGER": {"bigint"}}


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    honker.make(tmp_path / "honker.db", honker.SCHEMA)
    return tmp_path / "honker.db"


def columns(path: Path | str, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute(f"PRAGMA table_info({table})").fetchall()


@pytest.mark.usefixtures("sqlite")
def test_on_sqlite_the_schema_is_that_of_honker(reference: Path) -> None:
    ours, theirs = honker.schema(connection.settings_dict["NAME"]), honker.schema(reference)
    assert "claimed_atINTEGER" in ours[tables.LIVE]
    ours[tables.LIVE] = ours[tables.LIVE].replace(",claimed_atINTEGER", "")
    assert ours == theirs  # tables, columns, types, defaults, index names, partial conditions, the view


@pytest.mark.usefixtures("sqlite")
@pytest.mark.parametrize("table", tables.MIRROR)
def test_on_sqlite_every_column_is_that_of_honker(reference: Path, table: str) -> None:
    later = [(12, "claimed_at", "INTEGER", 0, None, 0)] if table == tables.LIVE else []
    assert columns(connection.settings_dict["NAME"], table) == columns(reference, table) + later


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("table", tables.MIRROR)
def test_elsewhere_the_columns_have_native_types(reference: Path, table: str) -> None:
    ours = ask(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = %s "
        "AND table_schema IN ('public', DATABASE())".replace(
            "DATABASE()", "DATABASE()" if connection.vendor == "mysql" else "'public'"
        ),
        [table],
    )
    theirs = {name: (kind, notnull or pk) for _, name, kind, notnull, _, pk in columns(reference, table)}
    if table == tables.LIVE:
        theirs["claimed_at"] = ("INTEGER", 0)
    assert {name for name, *_ in ours} == set(theirs)
    for name, kind, nullable in ours:
        assert kind in TEXTS[theirs[name][0]], name
        assert (nullable == "NO") == bool(theirs[name][1]), name


@pytest.mark.parametrize(
    ("sql", "model", "expected"),
    [
        (
            "INSERT INTO _honker_live (queue, payload) VALUES ('q', '1')",
            Job,
            {
                "state": "pending",
                "priority": 0,
                "attempts": 0,
                "max_attempts": 3,
                "run_at": "now",
                "created_at": "now",
            },
        ),
        (
            "INSERT INTO _honker_dead (id, queue, payload) VALUES (7, 'q', '1')",
            DeadJob,
            {
                "priority": 0,
                "run_at": 0,
                "attempts": 0,
                "max_attempts": 0,
                "created_at": "now",
                "died_at": "now",
            },
        ),
        ("INSERT INTO _honker_results (job_id, value) VALUES (7, '1')", Result, {"created_at": "now"}),
        (
            "INSERT INTO _honker_scheduler_tasks (name, queue, cron_expr, payload, next_fire_at) "
            "VALUES ('n', 'q', '@every 5s', '1', 5)",
            ScheduledTask,
            {"priority": 0, "enabled": 1, "max_attempts": 3, "expires_s": None},
        ),
        ("INSERT INTO _honker_stream (topic, payload) VALUES ('t', '1')", StreamEvent, {"created_at": "now"}),
        (
            "INSERT INTO _honker_notifications (channel, payload) VALUES ('c', '1')",
            Notification,
            {"created_at": "now"},
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_defaults_are_the_databases_own(sql: str, model: Any, expected: dict[str, Any]) -> None:
    before = now()
    ask(sql)
    row = model.objects.get()
    for name, value in expected.items():
        found = getattr(row, name)
        if value == "now":
            assert before <= found <= now(), name
        else:
            assert found == value, name


def test_there_is_no_index_beside_those_that_are_meant() -> None:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, tables.LIVE)
    indexes = {name for name, each in found.items() if each["index"] and not each["primary_key"]}
    if get_dialect(connection).adopts_tables:
        assert indexes == {name for name in honker_indexes() if name.startswith("_honker_live")}
    else:
        made = {text.split()[2] for text in get_dialect(connection).indexes}
        assert indexes == {name for name in made if name.startswith("alkstore_live")}
    assert not [name for name, each in found.items() if each["foreign_key"]]


def honker_indexes() -> list[str]:
    return re.findall(r"CREATE INDEX (\w+)", honker.SCHEMA)


@pytest.mark.only("postgresql")
def test_partial_indexes_of_postgresql() -> None:
    found = dict(ask("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [tables.LIVE]))
    assert "WHERE ((state)::text = 'pending'::text)" in found["alkstore_live_claim"]
    assert "(queue, priority DESC, run_at, id)" in found["alkstore_live_claim"]
    assert "WHERE ((state)::text = 'pending'::text)" in found["alkstore_live_due"]
    assert "WHERE ((state)::text = 'processing'::text)" in found["alkstore_live_deadline"]


def test_names_of_all_indexes_fit_every_database() -> None:
    for model in apps.get_app_config("alkstore_django").get_models():
        with connection.cursor() as cursor:
            names = connection.introspection.get_constraints(cursor, model._meta.db_table)
        assert all(len(index.name) <= 30 for index in model._meta.indexes)
        assert all(len(name) <= 64 for name in names)


def test_side_tables_have_no_foreign_keys() -> None:
    for model in apps.get_app_config("alkstore_django").get_models():
        assert not [field for field in model._meta.get_fields() if field.is_relation], model


def test_long_texts() -> None:
    text = '"' + "é🙂" * 40_000 + '"'
    job = Job.objects.create(queue="q", payload=text)
    dead = DeadJob.objects.create(id=1, queue="q", payload=text, last_error=text)
    attempt = Attempt.objects.create(job_id=1, kind="failed", ended_at=0, error=text, traceback=text)
    for row in (job, dead, attempt):
        row.refresh_from_db()
    assert job.payload == dead.payload == dead.last_error == attempt.error == attempt.traceback == text


@pytest.mark.only("mysql")
def test_mariadb_columns_hold_every_character_whatever_the_database_was_made_with() -> None:
    ours = [model._meta.db_table for model in apps.get_app_config("alkstore_django").get_models()]
    found = ask(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() "
        "AND table_name IN %s AND character_set_name IS NOT NULL AND collation_name <> %s",
        [ours, get_dialect(connection).name_collation],
    )
    words_of_ours = {"kind", "status", "host", "version", "timezone", "catch_up", "owner"}
    assert {name for (name,) in found} <= words_of_ours


def test_migrations_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("makemigrations", "alkstore_django", check=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out
