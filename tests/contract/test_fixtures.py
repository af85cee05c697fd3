"""``dumpdata``, ``flush`` and ``loaddata``: all rows come back, and ids that come round again harm nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command

from alkstore_django import health, queues
from alkstore_django.models import (
    Attempt,
    DeadJob,
    Job,
    Lock,
    Notification,
    RateLimit,
    Run,
    ScheduledTask,
    StreamConsumer,
    StreamEvent,
)
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import history, where

pytestmark = pytest.mark.django_db(transaction=True)


def everything() -> dict[str, Any]:
    """All rows of all our tables."""
    models = apps.get_app_config("alkstore_django").get_models()
    return {
        model._meta.db_table: sorted(model._default_manager.values_list(), key=repr)
        for model in models
        if model._meta.managed
    }


def fill(queue: Queue) -> tuple[int, int]:
    """A job that waits, a running one, a dead one, and what is left of another; the first and the last id."""
    waiting = queue.enqueue({"text": "\x00 é 🙂", "number": 2**70}, priority=3, expires=600)
    queue.enqueue(2, priority=2)
    queue.enqueue(3, priority=1)
    queue.enqueue(4)
    first, _, third, fourth = queue.claim_batch("w", 4)
    assert queue.release(first, started=True)
    assert queue.fail(third, "no")
    assert queue.cancel(fourth.id)
    factories.result(fourth.id, '"kept"')
    Lock.objects.create(name="lock", owner="w", expires_at=2**40)
    RateLimit.objects.create(name="limit", window_start=60, count=3)
    StreamEvent.objects.create(topic="orders", payload="1")
    StreamConsumer.objects.create(name="consumer", topic="orders", offset=1)
    Notification.objects.create(channel="c", payload="1")
    schedule = {"queue": "q", "cron_expr": "* * * * *", "payload": "1", "next_fire_at": 60}
    ScheduledTask.objects.create(name="schedule", **schedule)
    return waiting, third.id


def reload(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.json")
    call_command("dumpdata", "alkstore_django", output=path, verbosity=0)
    call_command("flush", interactive=False, verbosity=0)
    assert not Job.objects.exists() and not DeadJob.objects.exists()
    call_command("loaddata", path, verbosity=0)


def test_all_rows_come_back(queue: Queue, tmp_path: Path) -> None:
    waiting, dead = fill(queue)
    before, told = everything(), history(dead)
    reload(tmp_path)
    assert everything() == before
    assert (where(waiting), where(dead), history(dead)) == ("live", "dead", told)
    job = queue.claim_one("w")
    assert job is not None
    assert (job.id, job.payload) == (waiting, {"text": "\x00 é 🙂", "number": 2**70})


def test_ids_that_come_round_again(queue: Queue, tmp_path: Path) -> None:
    """``loaddata`` sets the sequence to the highest live id; dead letters may lie above it."""
    _, dead = fill(queue)
    reload(tmp_path)
    new = [queue.enqueue("new", priority=9) for _ in range(4)]
    jobs = queue.claim_batch("w", 4)
    assert [job.id for job in jobs] == new
    for job in jobs:
        assert queue.fail(job, "no")
    assert queue.enqueue("last") > max(new)
    letters = DeadJob.objects.filter(queue=queue.name)
    assert letters.count() == 5
    assert letters.filter(payload='"new"').count() == 4
    assert letters.get(pk=dead).payload == "3"
    assert len(queues.requeue(letters.values_list("pk", flat=True))) == 5


@pytest.mark.parametrize("way", ["migrate", "a worker starts"])
def test_ids_lie_above_again(queue: Queue, tmp_path: Path, way: str) -> None:
    fill(queue)
    reload(tmp_path)
    if way == "migrate":
        call_command("migrate", verbosity=0)
    else:
        health.require_tables("default")
    columns = ((Job, "id"), (DeadJob, "id"), (Run, "job_id"), (Attempt, "job_id"))
    known = {job_id for model, name in columns for job_id in model.objects.values_list(name, flat=True)}
    assert queue.enqueue("new") > max(known)
