"""The ``a*`` variants, awaited from an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from alkstore_django import queues
from alkstore_django.compat import TaskResultDoesNotExist, TaskResultStatus
from alkstore_django.queues import Queue
from tests.contract import tasks

pytestmark = pytest.mark.django_db


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async_to_sync(scenario)()


def test_the_life_of_jobs(queue: Queue) -> None:
    async def scenario() -> None:
        first = await queue.aenqueue({"n": 1}, priority=1)
        rest = await queue.aenqueue_many([2, 3, 4, 5], delay=0)
        job = await queue.aclaim_one("w")
        assert (job.id, job.payload) == (first, {"n": 1})
        assert await queue.aheartbeat(job, 5)
        assert await queue.aretry(job, 60, "again")
        assert await queue.anext_claim_at() > 0
        jobs = await queue.aclaim_batch("w", 4)
        assert [each.id for each in jobs] == rest
        assert await queue.aack(jobs[0])
        assert await queue.afail(jobs[1], "no")
        assert await queue.arelease(jobs[2])
        assert await queue.aack_batch(jobs[3:]) == 1
        assert (await queue.aget_job(rest[1])).state == "dead"
        assert await queue.arequeue([rest[1]]) == 1
        assert await queue.acancel(rest[1])
        assert await queue.asweep_expired() == 0

    run(scenario)


def test_of_any_queue(queue: Queue) -> None:
    async def scenario() -> None:
        job_id = await queue.aenqueue(1)
        assert (await queues.aget_job(job_id)).queue == queue.name
        assert await queues.acancel(job_id)
        assert await queues.arequeue([job_id]) == {}

    run(scenario)


def test_bad_input(queue: Queue) -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="max_attempts"):
            await queue.aenqueue(1, max_attempts=0)
        with pytest.raises(TypeError, match=r"payloads\[0\]"):
            await queue.aenqueue_many([{1}])

    run(scenario)


@pytest.mark.parametrize("task", [tasks.send, tasks.told, tasks.plain], ids=["ours", "coroutine", "plain"])
def test_tasks(task: Any) -> None:
    async def scenario() -> None:
        result = await task.using(run_after=timedelta(hours=1)).aenqueue(5)
        found = await task.aget_result(result.id)
        assert (found.task, found.args, found.status) == (result.task, [5], TaskResultStatus.READY)
        await result.arefresh()
        with pytest.raises(TaskResultDoesNotExist):
            await task.aget_result("x")

    run(scenario)


def test_every_operation_has_its_variant() -> None:
    operations = {name for name, value in vars(Queue).items() if callable(value) and name.isidentifier()}
    awaited = {name for name in vars(Queue) if f"a{name}" in vars(Queue)}
    public = {name for name in operations if not name.startswith("_")} - {f"a{name}" for name in awaited}
    assert public - awaited == {"enqueue_text", "enqueue_texts"}
