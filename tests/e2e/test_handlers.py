"""``@handler``: the payloads of a queue that are no tasks, run by ``alkworker``."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group

from alkstore_django.models import Job, Result, Run
from alkstore_django.queues import Queue, get_job
from tests.app import tasks
from tests.factories import claimed
from tests.factories import live as row
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, history, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.e2e.handling"}


def drain(workers: Workers, *arguments: object) -> Process:
    worker = workers.start("--batch", "--interval", 0.05, *arguments, **SETTINGS)
    assert worker.join() == 0
    return worker


def stored(job_id: int) -> Any:
    return Result.objects.get(pk=job_id).value


def test_payloads_and_tasks_of_one_queue(workers: Workers, journal: Journal) -> None:
    values = [{"to": 1}, [1, "é"], None, "text", 2.5]
    raw = Queue("lines").enqueue_many([{"path": journal.path, "line": value} for value in values])
    task = int(tasks.write.using(queue_name="lines", priority=-1).enqueue(journal.path, "a task").id)
    worker = drain(workers, "--threads", 1)
    assert journal.lines[:5] == ['{"to": 1}', '[1, "\\u00e9"]', "null", '"text"', "2.5"]
    assert journal.keys[5:] == ["a task"]
    assert succeeded() == {*raw, task}
    assert set(Run.objects.values_list("task", flat=True)) == {
        "tests.app.handlers.write_payload",
        "tests.app.tasks.write",
    }
    assert not Result.objects.filter(pk__in=raw).exists()
    info = get_job(raw[0])
    assert info is not None
    assert info.state == "succeeded"
    assert worker.count(f"id={raw[0]} queue=lines task=tests.app.handlers.write_payload: .* succeeded") == 1
    assert worker.count("no tasks") == 0


def test_its_queue_is_served_by_default_where_it_is_known(workers: Workers, journal: Journal) -> None:
    Queue("lines").enqueue({"path": journal.path, "line": 1})
    assert workers.start("--batch", "--queue", "*").join() == 0
    assert journal.lines == []
    assert live(attempts=0) == 1
    drain(workers, "--exclude-queue", "lines")
    assert journal.lines == []
    drain(workers, "--queue", "*")
    assert journal.lines == ["1"]


def test_results_are_kept_where_they_are_asked_for(workers: Workers) -> None:
    job_id = Queue("stored").enqueue(21)
    drain(workers)
    assert stored(job_id) == "42"


def test_a_result_that_cannot_be_kept_is_a_dead_letter(workers: Workers) -> None:
    job_id = Queue("unstorable").enqueue(1)
    drain(workers)
    assert set(dead()) == {job_id}
    assert history(job_id) == ["failed"]


def test_the_context(workers: Workers) -> None:
    job_id = Queue("contexts").enqueue("p", max_attempts=7)
    drain(workers)
    expected = {"id": job_id, "queue": "contexts", "attempt": [1, 7]}
    assert json.loads(stored(job_id)) == expected | {"cancelled": False, "held": True, "payload": "p"}


@pytest.mark.parametrize(
    ("how", "max_attempts", "runs", "kinds", "end"),
    [
        ("once", 3, 2, ["failed"], "succeeded"),
        ("ask again", 3, 2, ["failed"], "succeeded"),
        ("always", 2, 2, ["failed", "failed"], "dead"),
        ("always", 1, 1, ["failed"], "dead"),
        ("for good", 3, 1, ["failed"], "dead"),
        ("discard", 3, 1, ["failed"], "failed"),
    ],
)
def test_failures(
    workers: Workers, journal: Journal, how: str, max_attempts: int, runs: int, kinds: list[str], end: str
) -> None:
    job_id = Queue("failing").enqueue({"path": journal.path, "how": how}, max_attempts=max_attempts)
    drain(workers)
    assert len(journal.lines) == runs
    assert history(job_id) == kinds
    info = get_job(job_id)
    assert info is not None
    assert info.state == end


def test_coroutines_share_the_loop(workers: Workers, journal: Journal) -> None:
    jobs = Queue("coroutines").enqueue_many([{"path": journal.path, "name": name} for name in ("one", "two")])
    drain(workers, "--threads", 1)
    assert succeeded() == set(jobs)
    assert sorted(Group.objects.values_list("name", flat=True)) == ["one", "two"]


def test_a_timeout(workers: Workers) -> None:
    job_id = Queue("slow").enqueue(1, max_attempts=1)
    drain(workers)
    assert "longer than its timeout of 0.2 s" in dead()[job_id]


def test_what_is_no_json_is_dead_at_once(workers: Workers) -> None:
    broken = [row("lines", text) for text in ("not json", '{"__honker_task__": null}', '{"__honker_task__"')]
    drain(workers)
    assert set(dead()) == set(broken)


def test_expired_and_exhausted_payloads_are_swept(workers: Workers, journal: Journal) -> None:
    payload = {"path": journal.path, "line": 1}
    expired = Queue("lines").enqueue(payload, expires=0)
    exhausted = row("lines", "1", attempts=3)
    workers.start("--interval", 0.05, **SETTINGS)
    workers.wait_until(lambda: set(dead()) == {expired, exhausted}, "both are swept")
    assert journal.lines == []


def test_a_killed_worker_leaves_it_to_another(workers: Workers, journal: Journal, gate: Path) -> None:
    job_id = Queue("held").enqueue({"path": journal.path, "gate": str(gate)})
    first = workers.start("--interval", 0.05, **SETTINGS)
    workers.wait_until(lambda: journal.lines == ["start"], "it runs")
    first.stop(signal.SIGKILL)
    gate.touch()
    drain(workers)
    assert history(job_id) == ["lost"]
    assert succeeded() == {job_id}


def test_what_another_claimed_is_left(workers: Workers) -> None:
    theirs = claimed("lines", "1")
    workers.ready("--interval", 0.05, **SETTINGS)
    later = Queue("stored").enqueue(1)
    workers.wait_until(lambda: later in succeeded(), "it works")
    assert Job.objects.get(pk=theirs).worker_id == "another"
