"""``enqueue_on_commit``: not before the commit, never after a rollback, and once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, transaction
from django.utils import translation

from alkstore_django.compat import InvalidTask
from alkstore_django.models import Job
from alkstore_django.payloads import MAX_DEPTH
from alkstore_django.testing import enqueued
from tests.app import told
from tests.contract import tasks

COMMITS = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def waiting(using: str = "default") -> int:
    return Job.objects.using(using).count()


@COMMITS
def test_after_the_commit() -> None:
    with transaction.atomic():
        promise = tasks.send.enqueue_on_commit(1, colour="red")
        assert (waiting(), promise.result, promise.is_kept) == (0, None, False)
    assert (waiting(), promise.is_kept) == (1, True)
    assert (promise.result.args, promise.result.kwargs) == ([1], {"colour": "red"})
    assert tasks.send.get_result(promise.result.id).args == [1]


@COMMITS
def test_at_once_outside_of_a_transaction() -> None:
    assert tasks.send.enqueue_on_commit(1).is_kept
    assert waiting() == 1


@COMMITS
def test_never_after_a_rollback() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        promise = tasks.send.enqueue_on_commit(1)
        raise ZeroDivisionError
    assert (waiting(), promise.is_kept) == (0, False)
    with transaction.atomic():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            tasks.send.enqueue_on_commit(1)
            raise ZeroDivisionError
        tasks.send.enqueue_on_commit(2)
    assert [result.args for result in enqueued(tasks.send)] == [[2]]


@COMMITS
def test_the_transaction_of_another_database() -> None:
    with transaction.atomic(using="other"):
        promise = tasks.send.enqueue_on_commit(1, using="other")
        assert waiting() == 0
        assert tasks.send.enqueue_on_commit(2).is_kept  # none is open on its own
    assert promise.is_kept
    with pytest.raises(ZeroDivisionError), transaction.atomic(using="other"):
        tasks.send.enqueue_on_commit(3, using="other")
        raise ZeroDivisionError
    assert waiting() == 2


@COMMITS
def test_arguments_and_language_are_those_of_the_call() -> None:
    given = [1]
    with transaction.atomic(), translation.override("de"):
        promise = tasks.send.enqueue_on_commit(given)
        told.where.enqueue_on_commit()
        given.append(2)
    assert promise.result.args == [[1]]
    assert '"language":"de"' in Job.objects.get(pk=int(promise.result.id) + 1).payload


@COMMITS
def test_one_that_fails_is_logged_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def enqueue(self: Any, task: Any, args: Any, kwargs: Any) -> Any:
        if args == [1]:
            raise DatabaseError("no database")
        return original(self, task, args, kwargs)

    from alkstore_django.backends import AlkstoreBackend

    original = AlkstoreBackend.enqueue
    monkeypatch.setattr(AlkstoreBackend, "enqueue", enqueue)
    with transaction.atomic():
        first, second = tasks.send.enqueue_on_commit(1), tasks.send.enqueue_on_commit(2)
    assert (first.is_kept, second.is_kept, waiting()) == (False, True, 1)
    assert "no database" in caplog.text
    with pytest.raises(DatabaseError, match="no database"):
        tasks.send.enqueue_on_commit(1)


@COMMITS
def test_with_autocommit_off() -> None:
    transaction.set_autocommit(False)
    try:
        assert tasks.send.enqueue_on_commit(1).is_kept  # a part of what is committed by hand
        transaction.rollback()
    finally:
        transaction.set_autocommit(True)
    assert waiting() == 0
    transaction.set_autocommit(False, using="other")
    try:
        with pytest.raises(transaction.TransactionManagementError):
            tasks.send.enqueue_on_commit(1, using="other")
        transaction.rollback(using="other")
    finally:
        transaction.set_autocommit(True, using="other")
    assert waiting() == 0


@COMMITS
def test_awaited() -> None:
    async def enqueue() -> Any:
        return await tasks.send.aenqueue_on_commit(1)

    assert async_to_sync(enqueue)().is_kept
    with transaction.atomic():
        promise = async_to_sync(enqueue)()
        assert not promise.is_kept
    assert promise.is_kept


@pytest.mark.django_db
def test_bad_input_is_refused_at_the_call(django_assert_num_queries: Any, settings: Any) -> None:
    with django_assert_num_queries(0):
        with pytest.raises(TypeError, match=r"args\[0\]"):
            tasks.send.enqueue_on_commit(object())
        with pytest.raises(ValueError, match=r"kwargs\['to'\]"):
            tasks.send.enqueue_on_commit(to=float("nan"))
        with pytest.raises(ValueError, match="^args is nested too deeply"):
            tasks.send.enqueue_on_commit(json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH))
        backend = "alkstore_django.backends.AlkstoreBackend"
        settings.TASKS = {"default": {"BACKEND": backend, "QUEUES": ["only"]}}
        with pytest.raises(InvalidTask):
            tasks.send.enqueue_on_commit(1)


@pytest.mark.django_db
def test_in_a_test_case(django_capture_on_commit_callbacks: Any) -> None:
    promise = tasks.send.enqueue_on_commit(1)
    assert (waiting(), promise.is_kept) == (0, False)
    with django_capture_on_commit_callbacks(execute=True):
        promise = tasks.send.enqueue_on_commit(1)
    assert (waiting(), promise.is_kept) == (1, True)
