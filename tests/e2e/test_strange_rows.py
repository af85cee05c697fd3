"""Rows that a worker cannot run: unknown tasks, broken payloads, and jobs of another program."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from alkstore_django.envelopes import Envelope
from alkstore_django.models import Attempt, DeadJob, Job, Run
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.processes import Journal, Workers
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

BROKEN = ["not json", "", '{"a":', "\\x00", "[1, 2"]
BROKEN_TASKS = [
    '{"__honker_task__": oops',
    '{"__honker_task__": null}',
    '{"__honker_task__": {"task": 5, "args": []}}',
    '{"__honker_task__": {"task": "tests.app.tasks.nothing", "args": 7}}',
    '{"__honker_task__"',
]


def insert(payload: Any, priority: int = 0, expression: str = "%s") -> int:
    """A row as another program writes it."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO _honker_live (queue, payload, priority) VALUES ('default', {expression}, %s)",
            [payload, priority],
        )
    return int(Job.objects.latest("id").pk)


def unknown(name: str, **options: Any) -> int:
    return Queue("default").enqueue_text(Envelope(name, [], {}).seal(), **options)


@pytest.mark.parametrize("name", ["tests.app.tasks.removed", "tests.app.gone.task", "elsewhere.task", "bare"])
def test_an_unknown_task_is_a_dead_letter(workers: Workers, journal: Journal, name: str) -> None:
    stray = unknown(name, max_attempts=1, priority=1)
    healthy = {int(tasks.write.enqueue(journal.path, "healthy").id) for _ in range(10)}
    assert workers.start("--batch").join() == 0
    assert succeeded() == healthy
    assert set(dead()) == {stray}
    assert repr(name) in dead()[stray]
    assert Attempt.objects.get().error_class == "alkstore_django.exceptions.UnknownTask"


def test_an_unknown_task_has_its_attempts(workers: Workers) -> None:
    """A rolling deploy may bring it: the worker that does not know it yet waits like after any failure."""
    stray = unknown("tests.app.tasks.removed", max_attempts=2)
    workers.start()
    workers.wait_until(lambda: live(id=stray, state="pending", attempts=1) == 1, "one attempt is spent")
    job = Job.objects.get(pk=stray)
    assert job.run_at > job.created_at + 10
    Job.objects.update(run_at=job.created_at)
    workers.wait_until(lambda: set(dead()) == {stray}, "it is dead")
    assert history(stray) == ["failed", "failed"]
    assert "'tests.app.tasks.removed'" in dead()[stray]


def test_nothing_but_a_task_is_called(workers: Workers, journal: Journal) -> None:
    """Whoever may write to the table names what runs: a function that is no task does not."""
    payload = Envelope("tests.app.tasks.write_line", [journal.path, "called"], {}).seal()
    job_id = Queue("default").enqueue_text(payload, max_attempts=1)
    assert workers.start("--batch").join() == 0
    assert journal.lines == []
    assert "no task 'tests.app.tasks.write_line'" in dead()[job_id]


def test_broken_payloads_are_dead_at_once(workers: Workers, journal: Journal) -> None:
    broken = {insert(payload): payload for payload in BROKEN}
    broken_tasks = {insert(payload): payload for payload in BROKEN_TASKS}
    tasks.write.enqueue(journal.path, "healthy")
    worker = workers.start("--batch", "--queue", "default")
    assert worker.join() == 0

    assert journal.keys == ["healthy"]
    assert not live()
    letters = {letter.pk: letter for letter in DeadJob.objects.all()}
    assert {job_id: letter.payload for job_id, letter in letters.items()} == broken | broken_tasks
    assert {letters[job_id].attempts for job_id in broken} == {0}
    assert {letters[job_id].attempts for job_id in broken_tasks} == {1}
    classes = Attempt.objects.values_list("error_class", flat=True)
    assert set(classes) == {"alkstore_django.exceptions.UndecodablePayload"}
    assert all("is not JSON text" in letters[job_id].last_error for job_id in broken)
    assert worker.count("Traceback") == 0


def test_broken_payloads_are_left_where_nobody_named_the_queue(workers: Workers, journal: Journal) -> None:
    """They may be another program's: ``default`` is served here only because tasks are declared for it."""
    broken = insert("not json")
    tasks.write.enqueue(journal.path, "healthy")
    assert workers.start("--batch").join() == 0
    assert journal.keys == ["healthy"]
    assert live(id=broken, attempts=0, state="pending") == 1
    assert not dead()


@pytest.mark.only("sqlite")  # other databases do not store such text
def test_invalid_utf8_is_dead_at_once(workers: Workers, journal: Journal) -> None:
    texts = [b"\xff\xfe broken", b'{"__honker_task__": "\xff"}']
    rows = [insert(text, expression="CAST(%s AS TEXT)") for text in texts]
    tasks.write.enqueue(journal.path, "healthy")
    assert workers.start("--batch", "--queue", "default").join() == 0
    assert journal.keys == ["healthy"]
    assert set(dead()) == set(rows)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CAST(payload AS BLOB), typeof(payload) FROM _honker_dead ORDER BY id")
        assert cursor.fetchall() == [(text, "text") for text in texts]


def test_jobs_of_another_program_are_left_alone(workers: Workers, journal: Journal) -> None:
    worker = workers.ready("--queue", "default")
    foreign = Queue("default").enqueue_many([{"to": n} for n in range(1_000)], priority=10)
    rows = list(Job.objects.order_by("id").values())

    behind = int(tasks.write.enqueue(journal.path, "behind them").id)
    workers.wait_until(lambda: behind in succeeded(), "the task runs")
    run = Run.objects.get(pk=behind)
    assert (run.started_at or 0) - run.enqueued_at <= 1

    for _ in range(2):  # each of these shows that the worker has looked at the queue again
        broken = insert("not json")
        workers.wait_until(lambda broken=broken: broken in dead(), "a broken row is found")
    assert worker.count("WARNING At least [0-9]+ due jobs of queue=default are no tasks") == 1
    assert worker.stop() == 0
    assert [row["id"] for row in rows] == foreign
    assert list(Job.objects.order_by("id").values()) == rows
