"""The heartbeat of a worker while the database is in trouble: no sign of health, and nothing that waits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from alkstore_django import workers
from alkstore_django.runtime import registration
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.outage import TROUBLE
from alkstore_django.runtime.plan import Plan
from alkstore_django.runtime.registration import Registration
from tests import factories
from tests.factories import ask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "health.json"


@pytest.fixture
def beat(file: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Beats of a worker, which are always due; the first is over."""
    monkeypatch.setattr(registration, "EVERY", 0.0)
    options = Options(using="default", health_file=str(file))
    mine = Registration(options, "w", Plan("default", ["mail"], None))
    mine.beat(0)
    return mine.beat


def running() -> list[int]:
    return [worker.running for worker in workers.workers()]


def test_only_when_it_is_due(django_assert_num_queries: Any, file: Path) -> None:
    mine = Registration(Options(using="default", health_file=str(file)), "w", Plan("default", ["mail"], None))
    assert mine.due_in() == 0
    mine.beat(0)
    file.unlink()
    assert 0 < mine.due_in() <= registration.EVERY
    with django_assert_num_queries(0):
        mine.beat(1)
    assert not file.exists()


@pytest.mark.only("postgresql", "mysql")
def test_a_session_that_has_ended(beat: Callable[[int], None], file: Path) -> None:
    """Everybody's trouble: it is told to the worker, who reconnects."""
    file.unlink()
    if connection.vendor == "postgresql":
        kill, ((session,),) = "SELECT pg_terminate_backend(%s)", ask("SELECT pg_backend_pid()")
    else:
        kill, ((session,),) = "KILL %s", ask("SELECT CONNECTION_ID()")
    with factories.another_session() as cursor:
        cursor.execute(kill, [session])
    with pytest.raises(TROUBLE):
        beat(1)
    assert not file.exists()
    connection.close()
    beat(2)
    assert running() == [2]
    assert file.exists()


@pytest.mark.only("sqlite")
def test_a_locked_file(beat: Callable[[int], None], file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.unlink()
    caplog.set_level(logging.WARNING, "alkstore_django.worker")
    ask("PRAGMA busy_timeout = 100")
    with factories.another_session() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        beat(1)
        beat(2)
        assert not file.exists()
        cursor.execute("COMMIT")
    ask("PRAGMA busy_timeout = 20000")
    assert [record.getMessage() for record in caplog.records] == [
        "The registry of workers cannot be written, the work goes on: database is locked"
    ]
    beat(3)
    assert running() == [3]
    assert file.exists()
