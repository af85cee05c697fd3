"""``alkstore_django.results``: save, get and sweep."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import queues, results
from alkstore_django.exceptions import AlkstoreError, ResultDoesNotExist, UndecodablePayload
from alkstore_django.models import PruningManager, Result
from alkstore_django.queues import Queue
from tests import factories
from tests.contract import tasks
from tests.contract.clerk import settle
from tests.factories import at, change, columns, within_a_second

pytestmark = pytest.mark.django_db(databases=["default", "other"])

ID = 2**40

VALUES: list[Any] = [
    None,
    0,
    False,
    "",
    [],
    {},
    2**70,
    1.5,
    "é\x00\ud800",
    {"a": [1, {"b": None}]},
    ["x" * 100_000],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_what_was_saved_is_found(value: Any) -> None:
    results.save(ID, value)
    assert results.get(ID) == value
    assert results.get(ID, "another") == value


def test_as_json_has_it() -> None:
    results.save(ID, {1: (2, 3), "é": None})
    assert results.get(ID) == {"1": [2, 3], "é": None}
    assert columns(ID, "value", model=Result) == ('{"1":[2,3],"\\u00e9":null}',)


def test_what_was_not_saved() -> None:
    with pytest.raises(ResultDoesNotExist, match=f"^Job id={ID} has no result: none is kept") as caught:
        results.get(ID)
    assert isinstance(caught.value, LookupError) and isinstance(caught.value, AlkstoreError)
    assert (caught.value.job_id, caught.value.state, caught.value.error) == (ID, None, "")
    assert results.get(ID, None) is None
    assert results.get(ID, default="nothing") == "nothing"


@pytest.mark.parametrize("job_id", [2**63, -(2**63) - 1, 10**30])
def test_what_can_be_no_id_is_not_found(job_id: int) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert results.get(job_id, "nothing") == "nothing"
    assert captured.captured_queries == []


@pytest.mark.parametrize("job_id", [2**63 - 1, -(2**63), 0, -1])
def test_any_id_of_the_column(job_id: int) -> None:
    results.save(job_id, "any")
    assert results.get(job_id) == "any"


def test_a_second_value_replaces_the_first() -> None:
    """And its time, but not the moment of the first."""
    results.save(ID, 1, ttl=60)
    change(ID, model=Result, created_at=7)
    results.save(ID, 2)
    assert results.get(ID) == 2
    assert columns(ID, "created_at", "expires_at", model=Result) == (7, None)
    results.save(ID, 3, ttl=5)
    assert columns(ID, "created_at", model=Result) == (7,)
    assert columns(ID, "expires_at", model=Result) != (None,)
    assert Result.objects.count() == 1


@pytest.mark.parametrize(
    ("ttl", "kept"),
    [(None, None), (1, 1), (60, 60), (1.2, 2), (timedelta(hours=1), 3600), (timedelta(seconds=1.5), 2)],
    ids=str,
)
def test_for_how_long(ttl: Any, kept: int | None) -> None:
    def scenario() -> None:
        results.save(ID, 1, ttl=ttl)
        assert columns(ID, "expires_at", model=Result) == (kept and factories.now() + kept,)

    within_a_second(scenario)


def test_at_its_very_second_it_is_over() -> None:
    def scenario() -> None:
        results.save(ID, "value", ttl=60)
        change(ID, model=Result, expires_at=at(1))
        assert results.get(ID) == "value"
        change(ID, model=Result, expires_at=at(0))
        with pytest.raises(ResultDoesNotExist):
            results.get(ID)
        assert results.get(ID, 5) == 5

    within_a_second(scenario)


def test_saved_again_after_its_time() -> None:
    results.save(ID, 1, ttl=60)
    change(ID, model=Result, expires_at=at(-5))
    results.save(ID, 2, ttl=60)
    assert results.get(ID) == 2


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"ttl": 0}, ValueError, "ttl"),
    ({"ttl": -1}, ValueError, "ttl"),
    ({"ttl": 0.5}, ValueError, "ttl"),
    ({"ttl": math.nan}, ValueError, "ttl"),
    ({"ttl": math.inf}, ValueError, "ttl"),
    ({"ttl": timedelta(0)}, ValueError, "ttl"),
    ({"ttl": timedelta.max}, ValueError, "ttl"),
    ({"ttl": "60"}, TypeError, "ttl"),
    ({"ttl": True}, TypeError, "ttl"),
    ({"value": math.nan}, ValueError, "value is nan"),
    ({"value": [{"a": math.inf}]}, ValueError, r"value\[0\]\['a'\]"),
    ({"value": {"a": {1, 2}}}, TypeError, r"value\['a'\]"),
    ({"value": b"bytes"}, TypeError, "value"),
    ({"value": ...}, TypeError, "value"),
    ({"value": {1: "a", "1": "b"}}, ValueError, "two keys"),
    ({"job_id": None}, TypeError, r"job_id .* int\(result.id\)"),
    ({"job_id": "7"}, TypeError, "job_id"),
    ({"job_id": 7.0}, TypeError, "job_id"),
    ({"job_id": True}, TypeError, "job_id"),
    ({"job_id": 2**63}, ValueError, "job_id"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD, ids=str)
def test_bad_input(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with transaction.atomic():
        with CaptureQueriesContext(connection) as captured, pytest.raises(error, match=message):
            results.save(**{"job_id": ID, "value": 1, **given})
        assert captured.captured_queries == []
        results.save(ID + 1, "the transaction can be used")
    assert Result.objects.count() == 1


@pytest.mark.parametrize("job_id", ["7", None, 7.0, True])
def test_bad_ids(job_id: Any) -> None:
    with pytest.raises(TypeError, match="job_id must be a whole number"):
        results.get(job_id, 1)


def test_in_the_caller_s_transaction() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        results.save(ID, 1)
        assert results.get(ID) == 1
        raise ZeroDivisionError
    assert results.get(ID, None) is None


def test_in_another_database() -> None:
    results.save(ID, 1, using="other", ttl=60)
    assert results.get(ID, "not here") == "not here"
    assert results.get(ID, using="other") == 1
    change(ID, model=Result, using="other", expires_at=at(-1))
    assert (results.sweep(), results.sweep(using="other")) == (0, 1)


def test_awaited() -> None:
    async def scenario() -> None:
        await results.asave(ID, [1], ttl=60)
        assert await results.aget(ID) == [1]
        assert await results.aget(ID + 1, "default") == "default"
        assert await results.asweep() == 0

    async_to_sync(scenario)()


def test_a_copy_tells_the_same() -> None:
    error = copy.copy(ResultDoesNotExist(5, "dead", "boom\ntrace"))
    assert (error.job_id, error.state, error.error) == (5, "dead", "boom\ntrace")
    assert str(error) == "Job id=5 has no result: it is a dead letter: boom"


# -- of jobs ------------------------------------------------------------------------------------------


def test_what_a_task_returned() -> None:
    """The worker saves it with the end of the job: ``get`` and the task's result tell the same."""
    result = tasks.send.enqueue(1)
    job = Queue("default").claim_one("w")
    assert job is not None
    from alkstore_django.turns import Outcome, Verdict

    assert settle(Outcome(job.claim, Verdict.ACK, value='{"a":[1]}', ttl=60)) == []
    result.refresh()
    assert results.get(int(result.id)) == result.return_value == {"a": [1]}


def test_a_lost_claim_saves_none() -> None:
    from alkstore_django.turns import Outcome, Verdict

    result = tasks.send.enqueue(1)
    job = Queue("default").claim_one("w")
    assert job is not None and queues.cancel(job.id)
    assert settle(Outcome(job.claim, Verdict.ACK, value="5")) == [job.claim]
    assert results.get(int(result.id), "none") == "none"


def finish(queue: Queue, job: Any, value: Any) -> bool:
    """The recipe of the documentation."""
    with transaction.atomic(using=queue.using):
        acked = queue.ack(job)
        if acked:
            results.save(job.id, value, ttl=60, using=queue.using)
    return acked


def test_with_the_ack_of_a_queue(queue: Queue) -> None:
    job_id = queue.enqueue("work")
    job = queue.claim_one("w")
    assert finish(queue, job, "done")
    assert (factories.where(job_id), results.get(job_id)) == ("", "done")


def test_without_an_ack_nothing_is_saved(queue: Queue) -> None:
    job_id = queue.enqueue("work")
    job = queue.claim_one("w")
    factories.lapse(job_id)
    assert queue.claim_one("another") is not None
    assert not finish(queue, job, "too late")
    assert results.get(job_id, None) is None


def test_what_cannot_be_saved_undoes_the_ack(queue: Queue) -> None:
    job_id = queue.enqueue("work")
    job = queue.claim_one("w")
    with pytest.raises(TypeError, match="value"):
        finish(queue, job, object())
    assert factories.where(job_id) == "live"
    assert finish(queue, job, None)


# -- of other programs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"r": [1, 2]}', {"r": [1, 2]}), ("null", None), ('"\\u00e9"', "é"), ('"é"', "é")],
)
def test_what_honker_saved(text: str, value: Any) -> None:
    factories.result(ID, text)
    assert results.get(ID) == value


def test_no_value_at_all() -> None:
    """The column may be NULL."""
    Result.objects.create(job_id=ID, value=None)
    with pytest.raises(ResultDoesNotExist):
        results.get(ID)


@pytest.mark.parametrize("text", ["not json", "", '{"a":'])
def test_what_is_no_json(text: str) -> None:
    factories.result(ID, text)
    with pytest.raises(UndecodablePayload, match=f"The result of job id={ID}"):
        results.get(ID, "default")


def test_invalid_utf8(sqlite: None) -> None:
    factories.ask("INSERT INTO _honker_results (job_id, value) VALUES (%s, CAST(x'22ff22' AS TEXT))", [ID])
    with pytest.raises(UndecodablePayload):
        results.get(ID)


# -- sweep --------------------------------------------------------------------------------------------


def test_sweep_deletes_what_is_over() -> None:
    def scenario() -> None:
        Result.objects.all().delete()
        for offset in (-100, 0, 1, 100):
            factories.result(ID + offset, expires_at=at(offset))
        factories.result(ID + 500)
        assert results.sweep() == 2
        assert set(Result.objects.values_list("pk", flat=True)) == {ID + 1, ID + 100, ID + 500}
        assert results.sweep() == 0

    within_a_second(scenario)


def test_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST", 10)
    sizes = []
    delete: Callable[..., int] = PruningManager.delete

    def noted(manager: Any, kind: str, keys: Any, **params: Any) -> int:
        sizes.append(len(keys))
        return delete(manager, kind, keys, **params)

    monkeypatch.setattr(PruningManager, "delete", noted)
    Result.objects.bulk_create(Result(job_id=ID + n, value="1", expires_at=1 + n) for n in range(25))
    assert results.sweep() == 25
    assert sizes == [10, 10, 5]
    assert results.sweep() == 0


def test_what_was_saved_again_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition is part of the DELETE."""
    for job_id in (ID, ID + 1):
        factories.result(job_id, expires_at=at(-1))
    delete: Callable[..., int] = PruningManager.delete

    def late(manager: Any, kind: str, keys: Any, **params: Any) -> int:
        results.save(ID, "again", ttl=60)
        return delete(manager, kind, keys, **params)

    monkeypatch.setattr(PruningManager, "delete", late)
    assert results.sweep() == 1
    assert results.get(ID) == "again"
