"""A database that lacks what it had, as while a backup is restored: which errors say so."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from alkstore_django.exceptions import TablesMissing
from alkstore_django.models import Job
from alkstore_django.runtime import exits
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.outage import may_pass
from alkstore_django.runtime.scheduler import Scheduler
from alkstore_django.runtime.worker import Worker
from tests.factories import ask

pytestmark = pytest.mark.django_db(transaction=True)

NO_TABLE = "SELECT 1 FROM nowhere"
LACKS = {
    "table": [NO_TABLE],
    "column": ["SELECT nothing FROM _honker_live"],
}
LACKS_ON_POSTGRESQL = {
    "schema": ["CREATE TABLE nowhere.anything (id integer)"],
    "unique index": ["INSERT INTO alkstore_inbox (source) VALUES ('') ON CONFLICT (source) DO NOTHING"],
    "right": ["SET LOCAL ROLE pg_monitor", "SELECT 1 FROM _honker_live"],
}


def error_of(*statements: str) -> DatabaseError:
    with pytest.raises(DatabaseError) as raised, transaction.atomic():
        for statement in statements:
            ask(statement)
    return raised.value


def passes(error: Exception, *, had_tables: bool = True) -> bool:
    return may_pass(error, "default", had_tables=had_tables)


@pytest.mark.parametrize("statements", LACKS.values(), ids=LACKS)
def test_what_is_lacking(statements: list[str]) -> None:
    assert passes(error_of(*statements))


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("statements", LACKS_ON_POSTGRESQL.values(), ids=LACKS_ON_POSTGRESQL)
def test_what_is_lacking_on_postgresql(statements: list[str]) -> None:
    error = error_of(*statements)
    assert not isinstance(error, OperationalError)
    assert passes(error) and not passes(error, had_tables=False)


@pytest.mark.only("postgresql")
def test_what_a_pipeline_says() -> None:
    jobs = Job.objects.db_manager("default")
    if not jobs.can_pipeline():
        pytest.fail("the tests are to run on a driver that can")
    with pytest.raises(DatabaseError) as raised:
        jobs.pipeline([NO_TABLE, "SELECT 1"], {})
    connection.close()
    assert passes(raised.value)


@pytest.mark.only("postgresql", "mysql")
def test_a_table_that_never_was() -> None:
    """The first look says that the migrations have not run: nothing is waited for then."""
    assert not passes(error_of(NO_TABLE), had_tables=False)
    assert not passes(TablesMissing("x"), had_tables=False)


@pytest.mark.only("postgresql", "mysql")
def test_a_mistake_of_ours_does_not_pass() -> None:
    assert not passes(error_of("SELEKT 1"))
    assert not passes(ValueError("x"))


def gone_at_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are not there when they are looked for, and are there right after it."""
    names = connection.introspection.table_names

    def first(*args: Any) -> list[str]:
        monkeypatch.setattr(connection.introspection, "table_names", names)
        return []

    monkeypatch.setattr(connection.introspection, "table_names", first)


def test_a_scheduler_beside_a_worker_waits_for_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would begin it again."""
    scheduler = Scheduler("default", had_tables=True)
    gone_at_the_first_look(monkeypatch)
    scheduler._pass_or_wait()
    assert scheduler.outage.is_on
    scheduler._pass_or_wait()
    assert not scheduler.outage.is_on
    scheduler.leadership.release()


def test_a_scheduler_alone_says_that_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gone_at_the_first_look(monkeypatch)
    with pytest.raises(TablesMissing):
        Scheduler("default")._pass_or_wait()


def test_a_worker_waits_for_tables_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when they are back before it could look again."""
    worker = Worker(Options(using="default", batch=True, threads=1, interval=0.01, scheduler=False))
    worker._begin()
    worker.outage.wait_after(OperationalError("away"))
    gone_at_the_first_look(monkeypatch)
    assert worker.run() == exits.DONE
    assert not worker.outage.is_on
