"""``migrate`` on an empty database, on a file that honker made first, and backwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections
from django.test import override_settings

from alkstore_django.models import Job
from alkstore_django.queues import Queue
from alkstore_django.sql import tables
from tests.contract import honker
from tests.factories import ask

OURS = {
    tables.ATTEMPTS,
    tables.UNIQUE_KEYS,
    tables.RUNS,
    tables.WORKERS,
    tables.QUEUE_CONTROLS,
    tables.SCHEDULE_OPTIONS,
}
OURS |= {tables.METADATA, tables.UNIQUE_KEYS, tables.SCHEDULED_JOBS}
OURS |= {tables.LOCK_TOKENS, tables.RATE_PERIODS, tables.OUTBOX_KEYS, tables.OUTBOX_EVENTS, tables.INBOX}


@pytest.fixture
def scratch(sqlite: None, tmp_path: Path, django_db_blocker: Any) -> Iterator[Path]:
    """A file that is not there yet, as the database ``scratch``."""
    path = tmp_path / "scratch.sqlite3"
    connections.databases["scratch"] = {**connections.databases["default"], "NAME": str(path)}
    with django_db_blocker.unblock():
        yield path
        connections["scratch"].close()
    del connections["scratch"], connections.databases["scratch"]


def migrate(*target: str, database: str = "scratch") -> None:
    call_command("migrate", "alkstore_django", *target, database=database, verbosity=0)


def present(database: str = "scratch") -> set[str]:
    return set(connections[database].introspection.table_names())


def test_an_empty_file(scratch: Path) -> None:
    migrate()
    assert present() >= {*tables.MIRROR, *OURS}
    queue = Queue("emails", using="scratch")
    assert queue.enqueue({"to": 1}) == 1
    assert ask("SELECT id, queue, state FROM _honker_jobs", using="scratch") == [(1, "emails", "pending")]


def test_a_file_that_honker_made_first(scratch: Path) -> None:
    honker.make(scratch, honker.SCHEMA, honker.ROWS)
    rows, schema = honker.rows(scratch), honker.schema(scratch)
    migrate()
    assert honker.rows(scratch) == rows
    after = honker.schema(scratch)
    assert after.pop(tables.LIVE) == schema.pop(tables.LIVE).replace(
        "expires_atINTEGER)", "expires_atINTEGER,claimed_atINTEGER)"
    )
    assert after == schema  # the view as well
    queue = Queue("emails", using="scratch")
    job = queue.claim_one("w")
    assert job is not None
    assert (job.id, job.max_attempts, job.claim.claimed_at is not None) == (6, 4, True)
    assert queue.ack(job)
    assert len(ask("SELECT * FROM _honker_jobs", using="scratch")) == 4


def test_after_migrate_new_ids_lie_above_every_known_one(scratch: Path) -> None:
    honker.make(
        scratch, honker.SCHEMA, honker.ROWS
    )  # the live table has given 7, a dead letter has 30, a result 999
    migrate()
    assert Queue("emails", using="scratch").enqueue(1) == 1000


def test_an_older_file_gets_the_columns_that_it_lacks(scratch: Path) -> None:
    assert "enabled" not in honker.OLDER
    honker.make(scratch, honker.OLDER, honker.ROWS)
    migrate()
    assert ask("SELECT name, enabled, max_attempts FROM _honker_scheduler_tasks", using="scratch") == [
        ("five", 1, 3)
    ]
    assert ask("SELECT DISTINCT claimed_at FROM _honker_live", using="scratch") == [(None,)]


def test_honker_can_come_second(scratch: Path) -> None:
    migrate()
    schema = honker.schema(scratch)
    bootstrap = re.sub(r"CREATE (TABLE|INDEX)", r"CREATE \1 IF NOT EXISTS", honker.SCHEMA)
    honker.make(scratch, bootstrap.replace("CREATE VIEW", "DROP VIEW IF EXISTS _honker_jobs; CREATE VIEW"))
    assert honker.schema(scratch) == schema


def test_it_can_run_again(scratch: Path) -> None:
    migrate()
    schema = honker.schema(scratch)
    Queue("emails", using="scratch").enqueue(1)
    ask("DELETE FROM django_migrations", using="scratch")
    for table in OURS:
        ask(f"DROP TABLE {table}", using="scratch")
    migrate()
    assert honker.schema(scratch) == schema
    assert Job.objects.using("scratch").count() == 1


def test_backwards_with_rows_leaves_the_tables_of_honker(scratch: Path) -> None:
    honker.make(scratch, honker.SCHEMA, honker.ROWS)
    migrate()
    schema, rows = honker.schema(scratch), honker.rows(scratch)
    migrate("zero")
    assert (honker.schema(scratch), honker.rows(scratch)) == (schema, rows)
    assert not present() & OURS
    migrate()
    assert present() >= {*tables.MIRROR, *OURS}


@pytest.mark.parametrize("table", tables.MIRROR)
def test_backwards_one_row_in_any_table_is_enough(scratch: Path, table: str) -> None:
    migrate()
    insert = next(line for line in honker.ROWS.split(";") if f"INSERT INTO {table} " in line)
    honker.make(scratch, insert)
    migrate("zero")
    assert present() >= set(tables.MIRROR)


def test_backwards_without_rows_leaves_nothing(scratch: Path) -> None:
    migrate()
    migrate("zero")
    assert not present() & {*tables.MIRROR, *OURS}
    assert honker.schema(scratch) == {}
    migrate()
    assert Queue("emails", using="scratch").enqueue(1) == 1


class Elsewhere:
    """A router that keeps the app off one database."""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return db != "scratch" if app_label == "alkstore_django" else None


def test_tables_are_made_only_where_the_router_allows_it(scratch: Path) -> None:
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.Elsewhere"]):
        migrate()
        assert not present() & {*tables.MIRROR, *OURS}
        migrate("zero")


class OnlyDefault:
    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return db == "default" if app_label == "alkstore_django" else None


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_tables_are_made_only_where_the_router_allows_it_there_too() -> None:
    migrate("zero", database="other")
    try:
        with override_settings(DATABASE_ROUTERS=[f"{__name__}.OnlyDefault"]):
            migrate(database="other")
            assert not present("other") & {*tables.MIRROR, *OURS}
            migrate("zero", database="other")
            assert Queue("emails").enqueue(1)
    finally:
        migrate(database="other")
    assert Queue("emails", using="other").enqueue(1) == 1


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.django_db(transaction=True)
def test_there_and_back_where_every_row_is_ours() -> None:
    before = schema_of_default()
    Queue("emails").enqueue(1)
    migrate("zero", database="default")
    assert not present("default") & {*tables.MIRROR, *OURS}
    migrate(database="default")
    assert schema_of_default() == before
    assert Queue("emails").enqueue(1) == 1


def schema_of_default() -> dict[str, Any]:
    found = {}
    with connection.cursor() as cursor:
        for model in apps.get_app_config("alkstore_django").get_models():
            table = model._meta.db_table
            columns = connection.introspection.get_table_description(cursor, table)
            indexes = connection.introspection.get_constraints(cursor, table)
            found[table] = (
                [(each.name, each.null_ok, each.collation) for each in columns],
                sorted(str(each) for each in indexes.values() if each["index"] or each["primary_key"]),
            )
    return found
