"""Which database: ``Queue(using=)``, the backend's ``DATABASE``, else the router."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from alkstore_django import queues, served, status
from alkstore_django.compat import task_backends
from alkstore_django.models import Attempt, Job
from tests import factories
from tests.contract import tasks

pytestmark = pytest.mark.django_db(databases=["default", "other"])

BACKEND = "alkstore_django.backends.AlkstoreBackend"


class ToOther:
    """Everything of the app goes to the other database; reads of other apps stay where they are."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "alkstore_django" else None

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "default"  # a replica, say: nothing of ours may be read there


def count(using: str) -> int:
    return Job.objects.using(using).count()


def whole_life(queue: Any) -> None:
    """Every operation once."""
    ids = [queue.enqueue(1), *queue.enqueue_many(range(5), expires=0)]
    job = queue.claim_one("w")
    assert queue.heartbeat(job, 60)
    assert queue.retry(job, 0, "again")
    assert queue.release(queue.claim_one("w"), started=True)
    assert queue.fail(queue.claim_one("w"), "no")
    assert queue.requeue([job.id]) == 1
    assert queue.sweep_expired() == 5
    assert queue.ack_batch(queue.claim_batch("w", 5)) == 1
    assert queue.cancel(queue.enqueue(2))
    assert queue.get_job(ids[1]).state == "dead"
    assert queue.next_claim_at() == 0


def test_by_name() -> None:
    queue = factories.queue(using="other")
    assert queue.using == "other"
    assert repr(queue) == f"Queue({queue.name!r}, using='other')"
    with CaptureQueriesContext(connections["default"]) as captured:
        whole_life(queue)
    assert captured.captured_queries == []
    assert Attempt.objects.using("other").exists()


@override_settings(DATABASE_ROUTERS=[f"{__name__}.ToOther"])
def test_by_the_router() -> None:
    queue = factories.queue()
    assert queue.using == "other"
    with CaptureQueriesContext(connections["default"]) as captured:
        whole_life(queue)
        job_id = queue.enqueue(1)
        assert queues.get_job(job_id) is not None
        assert queues.cancel(job_id)
        assert queues.requeue([job_id]) == {}
    assert captured.captured_queries == []


def test_the_default_is_the_default() -> None:
    with CaptureQueriesContext(connections["other"]) as captured:
        whole_life(factories.queue())
    assert captured.captured_queries == []


@override_settings(
    TASKS={"default": {"BACKEND": BACKEND}, "far": {"BACKEND": BACKEND, "OPTIONS": {"DATABASE": "other"}}}
)
def test_by_the_backend() -> None:
    task = tasks.send.using(backend="far")
    result = task.enqueue(1)
    assert (count("default"), count("other")) == (0, 1)
    assert result.backend == "far"
    found = task.get_result(result.id)
    assert (found.task, found.backend, found.task.backend) == (task, "far", "far")
    assert task_backends["far"].using == "other"
    assert task_backends["default"].using == "default"


@override_settings(
    TASKS={
        "gone": {"BACKEND": "a.package.that.was.removed"},
        "default": {"BACKEND": BACKEND, "QUEUES": ["a", "b"], "OPTIONS": {"DATABASE": "other"}},
    }
)
def test_a_backend_that_cannot_be_loaded_is_no_hindrance_to_the_others() -> None:
    assert served.databases() == ["other"]
    assert {"a", "b"} <= {*served.queues("other")}


@override_settings(DATABASE_ROUTERS=[f"{__name__}.ToOther"])
def test_tasks_by_the_router() -> None:
    result = tasks.send.enqueue(1)
    assert (count("default"), count("other")) == (0, 1)
    result.refresh()


def test_it_is_part_of_the_transaction_of_its_database_only() -> None:
    queue = factories.queue(using="other")
    with pytest.raises(ZeroDivisionError), transaction.atomic():  # of default
        queue.enqueue(1)
        raise ZeroDivisionError
    assert count("other") == 1
    with pytest.raises(ZeroDivisionError), transaction.atomic(using="other"):
        queue.enqueue(2)
        raise ZeroDivisionError
    assert count("other") == 1


def test_two_databases_have_two_sequences() -> None:
    here, there = factories.queue(), factories.queue(using="other")
    mine = here.enqueue("here")
    assert queues.get_job(mine, using="other") is None
    assert not queues.cancel(mine, using="other")
    theirs = there.enqueue("there")
    found = queues.get_job(theirs, using="other")
    assert found is not None
    assert found.payload == "there"
    assert [each.queue for each in status.queues("other")] == [there.name]
