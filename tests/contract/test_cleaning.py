"""A worker's part in the maintenance: one of them at a time, a little between two turns."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alkstore_django.election import LOCK, Election
from alkstore_django.models import Lock, Result
from alkstore_django.runtime import cleaning
from alkstore_django.runtime.cleaning import Cleaning
from tests.contract.retaining import prune
from tests.factories import at, change, columns, now, result

pytestmark = pytest.mark.django_db


def due(owner: str, monkeypatch: pytest.MonkeyPatch) -> Cleaning:
    """One that begins at once."""
    monkeypatch.setattr(cleaning, "BEGINS", 0.0)
    return Cleaning("default", owner)


def end_of_the_lock() -> int:
    """In how many seconds."""
    return int(columns(LOCK, "expires_at", model=Lock)[0]) - now()  # type: ignore[arg-type]


def lapse() -> None:
    change(LOCK, model=Lock, expires_at=at(0))  # type: ignore[arg-type]


def test_one_is_elected() -> None:
    first, second = Election("default", "first"), Election("default", "second")
    assert first.hold(60) and first.hold(60)
    with CaptureQueriesContext(connection) as captured:
        assert not second.hold(60)
    assert len(captured) == 1  # a look
    lapse()
    assert second.hold(60)
    assert not first.hold(60)
    first.release()
    assert not first.hold(60)
    second.release()
    assert not Lock.objects.exists()
    assert first.hold(60)


def test_who_is_not_elected_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Election("default", "another").hold(60)
    result(1, expires_at=at(-1))
    worker = due("w", monkeypatch)
    worker.run_due()
    assert Result.objects.exists()
    assert 0.7 * cleaning.LOOK < worker.due_in() <= 1.2 * cleaning.LOOK
    worker.end(is_reachable=True)
    assert columns(LOCK, "owner", model=Lock) == ("another",)  # type: ignore[arg-type]


def test_a_pass_and_the_break_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for job_id in range(10):
        result(job_id, expires_at=at(-1))
    worker = due("w", monkeypatch)
    with caplog.at_level(logging.INFO, logger="alkstore_django.worker"):
        while worker.due_in() < cleaning.EVERY / 2:  # it takes breaks in between
            monkeypatch.setattr(worker, "_due", 0.0)
            worker.run_due()
            assert end_of_the_lock() > 0
    assert not Result.objects.exists()
    assert [record.getMessage() for record in caplog.records] == ["Deleted what was over: results 10."]
    assert end_of_the_lock() > cleaning.EVERY  # nobody else begins meanwhile
    worker.end(is_reachable=True)
    assert not Lock.objects.exists()


def test_it_begins_some_time_after_the_worker() -> None:
    assert cleaning.BEGINS * 0.9 < Cleaning("default", "w").due_in() <= 2 * cleaning.BEGINS


def test_it_ends_when_another_has_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a time in which it was frozen."""
    monkeypatch.setattr(cleaning, "BURST", 0.0)
    result(1, expires_at=at(-1))
    worker = due("w", monkeypatch)
    worker.run_due()
    lapse()
    assert Election("default", "another").hold(60)
    result(2, expires_at=at(-1))
    monkeypatch.setattr(worker, "_due", 0.0)
    monkeypatch.setattr(worker, "_renewed", worker._renewed - cleaning.RENEWAL - 1)
    worker.run_due()
    assert worker.due_in() > cleaning.LOOK / 2
    assert Result.objects.filter(pk=2).exists()
    assert prune("results")["results"] >= 1
