"""The log of the jobs: one line for each step, the same facts as fields, nothing of a payload."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from alkstore_django.envelopes import Envelope
from alkstore_django.queues import Queue
from alkstore_django.runtime.job_log import logger
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker
from tests.app import tasks
from tests.processes import Journal, Workers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def records() -> Iterator[list[Any]]:
    """What is logged about jobs, at every level."""
    found: list[Any] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    keeper, level = Keeper(), logger.logger.level
    logger.logger.addHandler(keeper)
    logger.logger.setLevel(logging.DEBUG)
    yield found
    logger.logger.removeHandler(keeper)
    logger.logger.setLevel(level)


def work() -> None:
    options = Options(using="default", batch=True, threads=1, interval=0.02, worker_id="the worker")
    assert Worker(options).run() == 0


def said(record: Any) -> str:
    """The line without what differs from run to run."""
    return re.sub(r"\d+ ms", "N ms", record.getMessage().replace(f"id={record.job_id}", "id=N"))


def check_fields(records: list[Any], job_id: int, task: str, attempts: list[int]) -> None:
    assert {record.job_id for record in records} == {job_id}
    assert {record.queue for record in records} == {"default"}
    assert {record.task for record in records} == {task}
    assert [record.attempt for record in records] == attempts
    assert {record.worker_id for record in records} == {"the worker"}


def test_a_success(records: list[Any], journal: Journal) -> None:
    job_id = int(tasks.nap.enqueue(journal.path, "secret", 0.05).id)
    work()
    start, end = records
    check_fields(records, job_id, "tests.app.tasks.nap", [1, 1])
    head = "Job id=N queue=default task=tests.app.tasks.nap: attempt 1 of 3"
    assert (start.levelname, said(start)) == ("DEBUG", f"{head} starts")
    assert (end.levelname, said(end)) == ("INFO", f"{head} succeeded after N ms")
    assert start.duration_ms is None
    assert end.duration_ms >= 50
    assert f"after {end.duration_ms} ms" in end.getMessage()


def test_a_failure_is_a_retry_and_then_a_dead_letter(records: list[Any]) -> None:
    job_id = int(tasks.fail.enqueue("no luck").id)
    work()
    check_fields(records, job_id, "tests.app.tasks.fail", [1, 1, 2, 2])
    _, first, _, last = records
    head = "Job id=N queue=default task=tests.app.tasks.fail: attempt"
    retry = f"{head} 1 of 2 failed after N ms, the next one in 0 s: Boom: no luck"
    assert (first.levelname, said(first)) == ("WARNING", retry)
    dead = f"{head} 2 of 2 failed after N ms, a dead letter now: Boom: no luck"
    assert (last.levelname, said(last)) == ("ERROR", dead)
    assert [type(record.exc_info[1]) for record in (first, last)] == [tasks.Boom, tasks.Boom]


def test_a_discarded_task(records: list[Any], journal: Journal) -> None:
    tasks.discard.enqueue(journal.path)
    work()
    assert records[-1].levelname == "INFO"
    assert said(records[-1]).endswith("attempt 1 of 3 was discarded after N ms: Discard: not worth it")


def test_an_unknown_task_is_told_once(records: list[Any]) -> None:
    job_id = Queue("default").enqueue_text(Envelope("tests.app.tasks.gone", [], {}).seal(), max_attempts=1)
    work()
    check_fields(records, job_id, "tests.app.tasks.gone", [1])
    assert records[0].levelname == "ERROR"
    assert "a dead letter now: UnknownTask: " in said(records[0])


def test_a_broken_envelope(records: list[Any]) -> None:
    job_id = Queue("default").enqueue_text('{"__honker_task__": {"task": 5, "args": ["secret"]}}')
    work()
    check_fields(records, job_id, "", [1])
    assert records[0].levelname == "ERROR"
    assert said(records[0]).startswith("Job id=N queue=default task=?: attempt 1 of 3 failed, a dead letter")
    assert "secret" not in said(records[0])


@pytest.mark.parametrize(("level", "lines"), [("ERROR", 1), ("WARNING", 2), ("INFO", 3), ("DEBUG", 6)])
def test_a_line_that_nobody_wants_is_not_made(
    records: list[Any], monkeypatch: pytest.MonkeyPatch, level: str, lines: int
) -> None:
    made = []
    make = logging.getLogRecordFactory()

    def counted(name: str, *args: Any, **kwargs: Any) -> Any:
        made.append(name)
        return make(name, *args, **kwargs)

    tasks.add.enqueue(1, 2)
    tasks.fail.enqueue()
    logger.logger.setLevel(level)
    logging.setLogRecordFactory(counted)
    try:
        work()
    finally:
        logging.setLogRecordFactory(make)
    assert made.count(logger.name) == lines == len(records)


@pytest.mark.parametrize(
    ("verbosity", "patterns"),
    [
        (0, ["ERROR Job .* a dead letter now: Boom: oh"]),
        (1, ["INFO Worker .* serves", "INFO Job .* succeeded after", "WARNING Job .* failed", "ERROR Job"]),
        (2, ["DEBUG Job .* starts", "INFO Job .* succeeded after", "INFO Worker .* ends after"]),
    ],
)
def test_verbosity(workers: Workers, journal: Journal, verbosity: int, patterns: list[str]) -> None:
    tasks.write.enqueue(journal.path, "secret")
    tasks.fail.enqueue("oh")
    worker = workers.start("--batch", "-v", verbosity)
    assert worker.join() == 0
    assert [pattern for pattern in patterns if not worker.count(pattern)] == []
    assert worker.count(" DEBUG ") == (3 if verbosity == 2 else 0)
    assert worker.count("INFO Job") == (1 if verbosity else 0)
    assert "secret" not in worker.output


@pytest.mark.parametrize("project_decides", [True, False])
def test_a_caller_of_a_command_keeps_its_lines(
    monkeypatch: pytest.MonkeyPatch, settings: Any, project_decides: bool
) -> None:
    """``verbosity`` is that of the command, whether it does its work or cannot."""
    ours = logging.getLogger("alkstore_django")
    if not project_decides:
        monkeypatch.setattr(ours, "handlers", [])
        monkeypatch.setattr(logging.root, "handlers", [])
    before = ours.level, list(ours.handlers), ours.propagate
    call_command("alkworker", batch=True, verbosity=0)
    assert (ours.level, ours.handlers, ours.propagate) == before
    settings.ALKSTORE = {"IMPORTS": ["tests.nowhere"]}
    for command in ("alkworker", "alkscheduler"):
        with pytest.raises(ImportError, match="nowhere"):
            call_command(command, verbosity=0)
        assert (ours.level, ours.handlers, ours.propagate) == before


def test_an_interrupted_task(workers: Workers, journal: Journal) -> None:
    job_id = int(tasks.hold.enqueue(journal.path, "held", "/nowhere").id)
    worker = workers.start("--shutdown-timeout", 0)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    assert worker.stop() == 1
    line = f"WARNING Job id={job_id} queue=default task=tests.app.tasks.hold: attempt 1 of 3 was interrupted$"
    assert worker.count(line) == 1
