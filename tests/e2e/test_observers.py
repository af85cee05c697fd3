"""Signals and task results are made only for those who see them, and each of those sees the same."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from alkstore_django import task_results
from alkstore_django.compat import task_finished, task_started
from alkstore_django.models import Run
from alkstore_django.observers import DJANGOS_LOGGER
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker
from alkstore_django.signals import task_retried
from alkstore_django.tasks import task
from tests.app import tasks

pytestmark = pytest.mark.django_db(transaction=True)

SIGNALS = {"started": task_started, "retried": task_retried, "finished": task_finished}
TIMES = ("enqueued_at", "started_at", "last_attempted_at", "finished_at")


grow_and: list[Callable[[], Any]] = []


@task
def grow(numbers: list[int]) -> int:
    """Changes its argument, which its observers must not see."""
    numbers.append(2)
    while grow_and:
        grow_and.pop()()
    return sum(numbers)


kept: list[Any] = []


@task(takes_context=True, backoff=0, max_attempts=2)
def look(context: Any) -> None:
    kept.append((context.task_result, seen(context.task_result)))
    if context.attempt == 1:
        raise ValueError("once more")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Django's own configuration logs every task."""
    with level(logging.CRITICAL):
        yield


@contextmanager
def level(number: int) -> Iterator[None]:
    before = DJANGOS_LOGGER.level
    DJANGOS_LOGGER.setLevel(number)
    try:
        yield
    finally:
        DJANGOS_LOGGER.setLevel(before)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every task result that a worker makes."""
    results: list[Any] = []
    make = task_results.running

    def noted(*arguments: Any) -> Any:
        results.append(make(*arguments))
        return results[-1]

    monkeypatch.setattr(task_results, "running", noted)
    return results


def seen(result: Any) -> dict[str, Any]:
    """What a result holds now, without what differs between two runs: its id, and when exactly."""
    content = {name: getattr(result, name) for name in ("task", "status", "kwargs", "backend", "attempts")}
    told = {name: moment for name in TIMES if (moment := getattr(result, name)) is not None}
    assert [*told.values()] == sorted(told.values())  # in whole seconds, so that some are the same
    return content | {
        "args": [*result.args],
        "value": result._return_value,
        "errors": [(each.exception_class_path, each.traceback) for each in result.errors],
        "times": [*told],
        # Two attempts may begin in one second, or not.
        "is first": result.attempts > 1 or result.started_at == result.last_attempted_at,
    }


@contextmanager
def listening(*names: str) -> Iterator[list[Any]]:
    """What receivers of these signals hear, as it is at that moment."""
    heard: list[Any] = []

    def receiver(name: str) -> Any:
        def receive(sender: Any, task_result: Any, signal: Any, **extra: Any) -> None:
            heard.append((name, sender, seen(task_result), extra))

        return receive

    receivers = {name: receiver(name) for name in names}
    for name, receive in receivers.items():
        SIGNALS[name].connect(receive)
    try:
        yield heard
    finally:
        for name, receive in receivers.items():
            SIGNALS[name].disconnect(receive)


@contextmanager
def reading() -> Iterator[list[Any]]:
    """What Django's own receivers write to the log."""
    lines: list[Any] = []

    class Reader(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            lines.append((record.levelname, re.sub(r"id=\d+", "", record.getMessage()), repr(error)))

    reader = Reader()
    DJANGOS_LOGGER.addHandler(reader)
    try:
        yield lines
    finally:
        DJANGOS_LOGGER.removeHandler(reader)


def run_some() -> None:
    grow.enqueue([1])
    tasks.fail.enqueue("no luck")
    assert Worker(Options(using="default", batch=True, threads=1, interval=0.02)).run() == 0


def test_nothing_is_made_for_nobody(made: list[Any]) -> None:
    run_some()
    assert made == []
    assert Run.objects.get().status == Run.SUCCEEDED


def test_each_receiver_alone_hears_what_it_hears_beside_the_others(made: list[Any]) -> None:
    with listening(*SIGNALS) as everything:
        run_some()
    assert [name for name, *_ in everything] == [
        "started",
        "finished",
        "started",
        "retried",
        "started",
        "finished",
    ]
    assert len(made) == 3
    assert everything[1][2]["args"] == [[1]]
    assert everything[1][2]["value"] == 3
    for name, count in {"started": 3, "retried": 1, "finished": 2}.items():
        made.clear()
        with listening(name) as heard:
            run_some()
        assert heard == [each for each in everything if each[0] == name]
        assert len(made) == count


def test_a_receiver_for_the_backend_alone_is_one(made: list[Any]) -> None:
    heard = []

    def receive(task_result: Any, **extra: Any) -> None:
        heard.append(task_result.status)

    task_finished.connect(receive, sender=type(grow.get_backend()))
    try:
        run_some()
    finally:
        task_finished.disconnect(receive, sender=type(grow.get_backend()))
    assert heard == ["SUCCESSFUL", "FAILED"]
    assert len(made) == 2


def test_the_log_of_django(made: list[Any]) -> None:
    with level(logging.INFO), reading() as lines, listening(*SIGNALS):
        run_some()
    assert len(lines) == 5
    assert lines[-1][0] == "ERROR" and "no luck" in lines[-1][2]
    made.clear()
    with level(logging.INFO), reading() as alone:
        run_some()
    assert alone == lines
    assert len(made) == 3
    made.clear()
    with level(logging.WARNING), reading() as errors:
        run_some()
    assert errors == [line for line in lines if line[0] == "ERROR"]
    assert len(made) == 1


def test_a_task_that_takes_its_context(made: list[Any]) -> None:
    def run() -> list[Any]:
        kept.clear()
        look.enqueue()
        assert Worker(Options(using="default", batch=True, threads=1, interval=0.02)).run() == 0
        return [*kept]

    with listening(*SIGNALS) as heard:
        beside_others = run()
    made.clear()
    alone = run()
    assert len(made) == 2
    started = [content for name, _, content, _ in heard if name == "started"]
    assert [content for _, content in alone] == [content for _, content in beside_others] == started
    # Whoever keeps it sees how the attempt ended.
    ends = [seen(result) for result, _ in alone]
    assert ends == [seen(result) for result, _ in beside_others]
    assert [each["status"] for each in ends] == ["READY", "SUCCESSFUL"]


def test_who_comes_while_a_task_runs_sees_its_end() -> None:
    with listening("finished") as whole:
        run_some()
    heard: list[Any] = []

    def receive(sender: Any, task_result: Any, signal: Any, **extra: Any) -> None:
        heard.append(("finished", sender, seen(task_result), extra))

    grow_and.append(lambda: task_finished.connect(receive))
    try:
        run_some()
    finally:
        task_finished.disconnect(receive)
    assert heard == whole
