"""Events are delivered by ``alkworker``: at least once, and those of a key in the order of their commits."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from alkstore_django import event_lines
from alkstore_django.models import DeadJob, Job, OutboxEvent
from alkstore_django.queues import cancel
from tests.app.outboxes import (
    describe,
    write,
    write_by_method,
    write_by_partial,
    write_later,
    write_or_skip,
)
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, live

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.e2e.relaying"}


def drain(workers: Workers, *arguments: object) -> Process:
    worker = workers.start("--batch", "--interval", 0.05, *arguments, **SETTINGS)
    assert worker.join() == 0
    return worker


def payload(journal: Journal, n: int, **more: Any) -> dict[str, Any]:
    return {"path": journal.path, "n": n, **more}


def of_key(journal: Journal, key: object) -> list[int]:
    return [int(line.split()[1]) for line in journal.lines if line.split()[0] == str(key)]


def test_what_an_event_tells(workers: Workers, journal: Journal) -> None:
    said = {"a": [1, "é"]}
    event_id = describe.enqueue({"path": journal.path, "said": said}, key=7)
    job = Job.objects.get()
    drain(workers)
    (line,) = map(ast.literal_eval, journal.lines)
    assert line[:6] == [event_id, "describing", "7", 1, 5, said]
    assert line[6:] == [datetime.fromtimestamp(job.created_at, UTC).isoformat(), True]
    assert event_id == f"describing-{job.pk}-{job.created_at}"


@pytest.mark.parametrize(
    "outbox",
    [write, write_later, write_by_partial, write_by_method],
    ids=["thread", "coroutine", "partial", "method"],
)
def test_events_of_a_key_come_in_order(workers: Workers, journal: Journal, outbox: Any) -> None:
    keys = [n % 7 for n in range(140)]
    outbox.enqueue_many([payload(journal, n) for n in range(140)], keys=keys)
    outbox.enqueue_many([payload(journal, n) for n in range(200, 220)])
    drain(workers)
    for key in range(7):
        assert of_key(journal, key) == list(range(key, 140, 7))
    assert sorted(of_key(journal, None)) == list(range(200, 220))
    assert not Job.objects.exists() and not OutboxEvent.objects.exists()


def test_several_workers(workers: Workers, journal: Journal) -> None:
    write.enqueue_many([payload(journal, n) for n in range(300)], keys=[n % 10 for n in range(300)])
    some = [workers.start("--interval", 0.05, **SETTINGS) for _ in range(3)]
    workers.wait_until(lambda: not live(), "all is delivered")
    assert [worker.stop() for worker in some] == [0, 0, 0]
    for key in range(10):
        assert of_key(journal, key) == list(range(key, 300, 10))


def test_a_dead_event_blocks_its_key_until_it_is_requeued(
    workers: Workers, journal: Journal, tmp_path: Path
) -> None:
    poison = tmp_path / "poison"
    poison.touch()
    events = [payload(journal, n, **({"poison": str(poison)} if n == 3 else {})) for n in range(20)]
    write.enqueue_many(events, keys=[n % 3 for n in range(20)])
    drain(workers)
    assert (of_key(journal, 0), of_key(journal, 1)) == ([0], list(range(1, 20, 3)))
    assert len(dead()) == 1
    (blocked,) = write.blocked()
    assert (blocked.key, blocked.job_id, blocked.waiting) == ("0", DeadJob.objects.get().pk, 6)
    poison.unlink()
    call_command("alkrequeue", queue=["_outbox:lines"], noinput=True, verbosity=0)
    drain(workers)
    assert of_key(journal, 0) == list(range(0, 20, 3))
    assert write.blocked() == [] and not OutboxEvent.objects.exists()


def test_a_dead_event_that_is_deleted_lets_the_others_pass(
    workers: Workers, journal: Journal, tmp_path: Path
) -> None:
    poison = tmp_path / "poison"
    poison.touch()
    write.enqueue(payload(journal, 0, poison=str(poison)), key="k")
    write.enqueue(payload(journal, 1), key="k")
    drain(workers)
    assert (journal.lines, live()) == ([], 1)
    DeadJob.objects.all().delete()
    assert event_lines.sweep("default", 0, []) == (0, 1)
    drain(workers)
    assert journal.lines == ["k 1"]


def test_a_dead_event_may_be_skipped(workers: Workers, journal: Journal, tmp_path: Path) -> None:
    poison = tmp_path / "poison"
    poison.touch()
    write_or_skip.enqueue(payload(journal, 0, poison=str(poison)), key="k")
    write_or_skip.enqueue(payload(journal, 1), key="k")
    drain(workers)
    assert journal.lines == ["k 1"]
    assert write_or_skip.blocked() == []
    poison.unlink()
    call_command("alkrequeue", queue=["_outbox:skipping"], noinput=True, verbosity=0)
    drain(workers)
    assert journal.lines == ["k 1", "k 0"]
    event_lines.sweep("default", 0, ["_outbox:skipping"])
    assert not OutboxEvent.objects.exists()


def test_a_cancelled_event_lets_the_others_pass(workers: Workers, journal: Journal) -> None:
    write.enqueue_many([payload(journal, n) for n in range(3)], keys=["k"] * 3)
    first, second, _ = Job.objects.order_by("pk").values_list("pk", flat=True)
    assert cancel(first) and cancel(second)
    event_lines.sweep("default", 0, [])
    drain(workers)
    assert journal.lines == ["k 2"]


def test_a_worker_that_is_killed_between_ack_and_the_next_event(
    workers: Workers, journal: Journal, gate: Path
) -> None:
    """Somebody else finds the line that did not move on."""
    write.enqueue_many([payload(journal, n) for n in range(3)], keys=["k"] * 3)
    first = Job.objects.order_by("pk").values_list("pk", flat=True)[0]
    Job.objects.filter(pk=first).delete()  # as a worker leaves it that is killed right after the ack
    worker = workers.start("--interval", 0.05, **SETTINGS)
    workers.wait_until(lambda: not live(), "the next worker has found it")
    assert worker.stop() == 0
    assert journal.lines == ["k 1", "k 2"]
