"""Ids of jobs are never given twice, not even after the sequence of the live table was set back."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection

from alkstore_django import health
from alkstore_django.models import Attempt, Job
from alkstore_django.queues import Queue
from tests import factories

pytestmark = pytest.mark.django_db


def remember(where: str, job_id: int) -> None:
    if where == "attempts":
        Attempt.objects.create(job_id=job_id, kind="failed", ended_at=0)
    else:
        getattr(factories, where)(job_id)


def set_back() -> None:
    """What ``flush`` and ``loaddata`` do to a sequence."""
    for sql in connection.ops.sequence_reset_by_name_sql(
        no_style(), [{"table": "_honker_live", "column": "id"}]
    ):
        factories.ask(sql)


@pytest.mark.parametrize("where", ["dead", "result", "run", "attempts"])
def test_new_ids_lie_above_all_known_ones(queue: Queue, where: str) -> None:
    known = queue.enqueue(1) + 1_000_000
    remember(where, known)
    health.require_tables("default")
    assert queue.enqueue(1) == known + 1
    assert queue.enqueue_many([2, 3]) == [known + 2, known + 3]
    assert not Job.objects.filter(queue="").exists()


@pytest.mark.django_db(transaction=True)  # MariaDB ends a transaction at ALTER TABLE
def test_after_the_sequence_was_reset(queue: Queue) -> None:
    known = factories.dead(queue.enqueue(1) + 1_000_000, queue.name)
    set_back()
    health.raise_sequence("default")
    assert queue.enqueue(1) > known


def test_it_never_goes_back(queue: Queue) -> None:
    before = queue.enqueue(1)
    Job.objects.all().delete()
    health.raise_sequence("default")
    assert queue.enqueue(1) > before


def test_ids_that_others_made_up_do_not_use_them_up(queue: Queue) -> None:
    before = queue.enqueue(1)
    factories.dead(2**63 - 1, queue.name)
    factories.result(2**62)
    health.raise_sequence("default")
    assert before < queue.enqueue(1) < before + 1_000_000


def test_rows_of_the_whole_range_can_be_moved(queue: Queue) -> None:
    for job_id in (2**63 - 1, 2**62, 1):
        if Job.objects.filter(pk=job_id).exists():
            continue
        factories.dead(job_id, queue.name)
    assert queue.requeue([2**62 - 1]) == 0
    assert queue.requeue([1]) == 1


@pytest.mark.django_db(transaction=True)
def test_flush_and_migrate(queue: Queue) -> None:
    known = factories.dead(queue.enqueue(1) + 1_000, queue.name)
    set_back()
    call_command("migrate", verbosity=0)
    assert queue.enqueue(1) > known
    call_command("flush", verbosity=0, interactive=False)
    assert not Job.objects.exists()
    assert queue.enqueue(1) >= 1


def test_missing_tables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from alkstore_django.exceptions import TablesMissing

    def names(*args: Any) -> list[str]:
        return ["_honker_live", "django_migrations"]

    monkeypatch.setattr(connection.introspection, "table_names", names)
    with pytest.raises(TablesMissing, match=r"run manage\.py migrate --database default"):
        health.require_tables("default")
