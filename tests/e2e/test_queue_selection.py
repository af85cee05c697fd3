"""Workers that serve queues by pattern, beside queues of other programs."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from django.db import transaction

from alkstore_django.models import Job, Run
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.processes import Journal, Workers
from tests.queue_state import dead, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def write(journal: Journal, queue: str, line: str) -> int:
    return int(tasks.write.using(queue_name=queue).enqueue(journal.path, line).id)


def test_precedence_of_patterns(workers: Workers, journal: Journal) -> None:
    with transaction.atomic():
        for queue in ("zeta", "mail-b", "alpha", "mail-a", "omega", "skipped", "_outbox:x"):
            write(journal, queue, queue)
    arguments = ("--queue", "zeta,mail-*", "--queue", "*", "--exclude-queue", "skip*", "--threads", 1)
    worker = workers.start(*arguments, "--batch")
    assert worker.join() == 0
    assert journal.keys == ["zeta", "mail-a", "mail-b", "alpha", "omega"]
    assert worker.count(r" serves zeta,mail-\*, \*\.$") == 1
    assert set(Job.objects.values_list("queue", "attempts")) == {("skipped", 0), ("_outbox:x", 0)}


def test_names_with_a_star_or_a_comma(workers: Workers, journal: Journal) -> None:
    for queue in ("odd*", "oddity", "a,b", "a", "b"):
        write(journal, queue, queue)
    assert workers.start("--queue", "odd\\*,a\\,b", "--threads", 1, "--batch").join() == 0
    assert journal.keys == ["odd*", "a,b"]


def test_queues_are_found_as_they_appear(workers: Workers, journal: Journal) -> None:
    workers.ready("--queue", "*")
    for number in range(3):
        queue = f"new {number}"
        job_id = write(journal, queue, queue)
        workers.wait_until(lambda job_id=job_id: job_id in succeeded(), f"the task in {queue!r} ran")
    assert journal.keys == ["new 0", "new 1", "new 2"]


def test_a_batch_finds_the_queues_that_its_own_tasks_fill(workers: Workers, journal: Journal) -> None:
    tasks.write_later.enqueue(journal.path, "done", "elsewhere")
    assert workers.start("--queue", "*", "--batch").join() == 0
    assert journal.keys == ["done"]
    assert not live()


def rows(queue: str) -> list[dict[str, Any]]:
    return list(Job.objects.filter(queue=queue).order_by("id").values())


def test_another_programs_queue_is_untouched(workers: Workers, journal: Journal) -> None:
    """Also what is broken, exhausted, expired or lapsed there, and over a kill of ours."""
    theirs = Queue("theirs")
    theirs.enqueue_many([{"to": number} for number in range(1_000)], priority=10)
    for text in ("not json", '{"__honker_task', "", "[1, 2"):
        theirs.enqueue_text(text, priority=10)
    theirs.enqueue(1, expires=0)
    (job,) = theirs.claim_batch("their worker", 1)
    Job.objects.filter(pk=job.id).update(claim_expires_at=1, attempts=3)
    theirs.enqueue(2)
    Job.objects.filter(pk=Job.objects.latest("id").pk).update(attempts=3)
    before = rows("theirs")

    gate = f"{journal.path}.gate"
    first = workers.ready("--queue", "*", "--visibility-timeout", 1)
    held = int(tasks.hold.using(queue_name="theirs").enqueue(journal.path, "held", gate).id)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    assert [row for row in rows("theirs") if row["id"] != held] == before

    with open(gate, "w"):
        second = workers.ready("--queue", "*", "--visibility-timeout", 1)
    behind = write(journal, "theirs", "behind them")
    workers.wait_until(lambda: {held, behind} <= succeeded(), "the tasks are done")
    run = Run.objects.get(pk=behind)
    assert (run.started_at or 0) - run.enqueued_at <= 1
    second.wait_for("due jobs of queue=theirs are no tasks; they are left for another program")
    assert second.stop() == 0
    assert rows("theirs") == before
    assert not dead()


def test_broken_payloads_are_buried_only_where_the_queue_is_named(workers: Workers, journal: Journal) -> None:
    left, buried = (Queue(name).enqueue_text("not json") for name in ("left", "named"))
    assert workers.start("--queue", "*,named", "--batch").join() == 0
    assert set(dead()) == {buried}
    assert live(id=left, attempts=0) == live() == 1
