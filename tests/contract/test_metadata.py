"""What tasks tell of their own runs: while they go on, at their end, and for how long it can be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import metadata, queues, turns
from alkstore_django.compat import task_backends, task_finished
from alkstore_django.contexts import Hold
from alkstore_django.envelopes import Envelope
from alkstore_django.metadata import Record
from alkstore_django.models import Metadata
from alkstore_django.testing import drain
from alkstore_django.turns import Renewal, Verdict
from tests import factories
from tests.app import tasks, told
from tests.contract import stages
from tests.contract import tasks as declared
from tests.factories import at, change

pytestmark = pytest.mark.django_db

BOTH = pytest.mark.parametrize("task", [told.progress, told.progress_async], ids=["sync", "async"])


def record(claim: Any, **given: Any) -> Record:
    return Record("default", claim, Envelope("x", [], {}, given), Hold())


def rows() -> dict[int, str]:
    return dict(Metadata.objects.values_list("job_id", "value"))


# -- a task -------------------------------------------------------------------------------------------


@BOTH
def test_it_is_kept_with_the_result(task: Any) -> None:
    result = task.enqueue(3)
    assert result.metadata == {}
    (ran,) = drain()
    assert (ran.ended, ran.error) == ("succeeded", None)
    result.refresh()
    assert result.metadata == result.raw_metadata == {"done": 3, "at the end": True}
    assert task.get_result(result.id).metadata == result.metadata


@BOTH
def test_what_a_failed_attempt_has_told_is_kept(task: Any) -> None:
    result = task.using(max_attempts=2).enqueue(1, fail=True)
    assert [ran.ended for ran in drain()] == ["retried", "dead"]
    result.refresh()
    assert result.metadata == {"done": 1, "at the end": True}


@BOTH
def test_a_later_attempt_and_a_new_life_go_on_from_there(task: Any) -> None:
    result = task.using(max_attempts=1, metadata={"trace": "x"}).enqueue(2, fail=True)
    drain()
    assert queues.requeue([int(result.id)])
    change(int(result.id), payload=factories.columns(int(result.id), "payload")[0].replace("true", "false"))
    (ran,) = drain()
    assert ran.value in ("x", {"trace": "x", "done": 2, "at the end": True})
    result.refresh()
    assert result.metadata == {"trace": "x", "done": 2, "at the end": True}


def test_a_task_without_it_pays_nothing() -> None:
    with CaptureQueriesContext(connection) as captured:
        tasks.attempt.enqueue()
        assert tasks.add.enqueue(1, 2).metadata == {}
        assert [ran.ended for ran in drain()] == ["succeeded", "succeeded"]
    assert captured.captured_queries
    assert not [query for query in captured.captured_queries if "alkstore_metadata" in query["sql"]]


def test_what_it_was_enqueued_with() -> None:
    result = told.progress.using(metadata={"trace": (1, 2)}).enqueue(0)
    assert result.metadata == {"trace": [1, 2]}
    assert told.progress.get_result(result.id).metadata == {"trace": [1, 2]}
    assert rows() == {}
    assert drain()[0].value == [1, 2]
    result.refresh()
    assert result.metadata == {"trace": [1, 2], "at the end": True}


def test_a_plain_task_reads_none_and_any_result_has_it() -> None:
    result = declared.plain.enqueue(1)
    assert (result.metadata, declared.plain.get_result(result.id).metadata) == ({}, {})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"_own": 1}, ["ValueError", "those that begin with _ are reserved"]),
        ({"text": "x" * 20_000}, ["ValueError", "more than 16384"]),
    ],
    ids=["reserved", "long"],
)
def test_what_is_refused(given: Any, words: list[str]) -> None:
    told.tell_badly.enqueue(given)
    (ran,) = drain()
    assert ran.value[0] == words[0]
    assert words[1] in ran.value[1]
    assert rows() == {}


def test_what_cannot_be_kept_at_the_end_changes_no_outcome(caplog: pytest.LogCaptureFixture) -> None:
    told.tell_object.enqueue()
    assert [ran.ended for ran in drain()] == ["succeeded"]
    assert (
        "its metadata could not be kept: Unsupported type: <class 'object'> at metadata['what']"
        in caplog.text
    )
    assert rows() == {}


def test_not_in_the_loop() -> None:
    told.tell_in_the_loop.using(max_attempts=1).enqueue()
    (ran,) = drain()
    assert isinstance(ran.error, SynchronousOnlyOperation)


@pytest.mark.parametrize("fail", [False, True])
def test_of_an_atomic_task(fail: bool) -> None:
    result = told.progress_atomic.enqueue(fail)
    drain()
    result.refresh()
    assert result.metadata == {"done": 2 if fail else 1}  # of a failed run, too, whose effects are undone
    assert Group.objects.count() == (0 if fail else 1)


@pytest.fixture
def finished() -> Iterator[list[Any]]:
    heard: list[Any] = []

    def hear(sender: Any, task_result: Any, **kwargs: Any) -> None:
        heard.append(task_result.metadata)

    task_finished.connect(hear)
    yield heard
    task_finished.disconnect(hear)


@BOTH
def test_receivers_see_it(task: Any, finished: list[Any]) -> None:
    task.enqueue(1)
    drain()
    assert finished == [{"done": 1, "at the end": True}]


# -- the fence ----------------------------------------------------------------------------------------


def test_a_run_that_lost_its_claim_cannot_write() -> None:
    result = stages.enqueue(1)
    held = stages.claim(result)
    assert metadata.save("default", held, {"n": 1})
    for lost in (
        held._replace(worker_id="another"),
        held._replace(attempts=held.attempts + 1),
        held._replace(id=held.id + 1_000),
    ):
        assert not metadata.save("default", lost, {"n": 2})
    change(held.id, claim_expires_at=at(-1))
    assert not metadata.save("default", held, {"n": 3})
    assert metadata.save("default", held, {"n": 4}, locked=True)  # whose row is locked cannot lose it
    assert queues.cancel(held.id)
    assert not metadata.save("default", held, {"n": 5}, locked=True)
    result.refresh()
    assert result.metadata == {"n": 4}


def test_the_same_again_is_no_loss() -> None:
    held = stages.claim(stages.enqueue(1))
    assert [metadata.save("default", held, {"n": 1}) for _ in range(3)] == [True] * 3


def test_once_it_has_ended_nobody_writes() -> None:
    result = stages.enqueue(1)
    held = stages.claim(result)
    stages.settle(held, Verdict.ACK)
    assert not metadata.save("default", held, {"n": 1})
    assert rows() == {}


def test_it_is_a_part_of_the_transaction() -> None:
    held = stages.claim(stages.enqueue(1))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert metadata.save("default", held, {"n": 1})
        raise ZeroDivisionError
    assert rows() == {}
    assert turns.take("default", "w", [], [], 0, [Renewal(held, 60)]).lost == []


def test_one_statement(django_assert_max_num_queries: Any) -> None:
    held = stages.claim(stages.enqueue(1))
    with django_assert_max_num_queries(2):  # MariaDB looks first, since a write would lock what it reads
        metadata.save("default", held, {"n": 1})


def test_a_record() -> None:
    held = stages.claim(stages.enqueue(1))
    told_so_far = record(held, metadata={"trace": 1})
    assert not told_so_far.is_changed
    assert told_so_far.values == {"trace": 1}
    assert not told_so_far.is_changed
    told_so_far.values["n"] = [1]
    assert told_so_far.is_changed
    assert told_so_far.save()
    assert not told_so_far.is_changed
    told_so_far.values["n"].append(2)
    assert told_so_far.is_changed
    told_so_far.save()
    told_so_far.undo()
    assert told_so_far.is_changed
    assert record(held).values == {"trace": 1, "n": [1, 2]}


def test_what_others_may_have_written() -> None:
    result = stages.enqueue(1)
    for text in ("not JSON", "[1]", "5", "null", ""):
        Metadata.objects.update_or_create(job_id=int(result.id), defaults={"value": text})
        result.refresh()
        assert result.metadata == {}
    Metadata.objects.filter(job_id=int(result.id)).update(value='{"_own": 1, "n": 2}')
    result.refresh()
    assert (result.metadata, result.raw_metadata) == ({"n": 2}, {"_own": 1, "n": 2})


def test_the_backend() -> None:
    backend: Any = task_backends["default"]
    assert backend.supports_metadata
    result = stages.enqueue(1)
    assert not backend.save_metadata(result)  # nobody runs it
    held = stages.claim(result)
    running = declared.send.get_result(result.id)
    running.raw_metadata["n"] = 1
    assert backend.save_metadata(running)
    assert async_to_sync(backend.asave_metadata)(running)
    stages.settle(held, Verdict.RETRY, failure=stages.failure())
    stages.claim(result)
    running.raw_metadata["n"] = 2
    assert not backend.save_metadata(running)  # the attempt before
    result.refresh()
    assert result.metadata == {"n": 1}
    with pytest.raises(ValueError, match="reserved"):
        running.raw_metadata["_n"] = 2
        backend.save_metadata(running)


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.django_db(transaction=True)
def test_a_task_that_tells_within_a_transaction_holds_up_no_renewal() -> None:
    """Also where the project asks for REPEATABLE READ: on MariaDB a write then locks what it reads."""
    held = stages.claim(stages.enqueue(1))
    with factories.another_session() as cursor:
        statement = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        impatience = "SET LOCAL lock_timeout = '1s'"
        if connection.vendor == "mysql":
            impatience = "SET SESSION innodb_lock_wait_timeout = 1"
        cursor.execute(impatience)
        connection.ensure_connection()
        with connection.cursor() as ours:
            if connection.vendor == "mysql":
                ours.execute(statement)  # of the next transaction
        with transaction.atomic():
            if connection.vendor == "postgresql":
                factories.ask(statement)
            assert metadata.save("default", held, {"n": 1})
            cursor.execute("UPDATE _honker_live SET claim_expires_at = 2000000000 WHERE id = %s", [held.id])
            assert cursor.rowcount == 1
    assert rows() == {held.id: '{"n":1}'}
