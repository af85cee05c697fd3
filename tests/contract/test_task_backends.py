"""``TASKS``: several aliases in one or several databases, routers, and settings that change."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

from alkstore_django import served
from alkstore_django.backends import AlkstoreBackend
from alkstore_django.compat import (
    NATIVE,
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from alkstore_django.envelopes import unseal
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from tests import factories
from tests.contract import tasks

pytestmark = pytest.mark.django_db(databases=["default", "other"])

OURS = "alkstore_django.backends.AlkstoreBackend"
FAMILY = "django.tasks" if NATIVE else "django_tasks"
HERE = {"BACKEND": OURS, "QUEUES": []}
THERE = {**HERE, "OPTIONS": {"DATABASE": "other"}}

several = override_settings(TASKS={"default": HERE, "fast": HERE, "far": THERE, "farther": THERE})


class ToOther:
    """Jobs are in the other database; a router that also sends reads elsewhere, as to a replica."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "alkstore_django" else None

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "default"


def enqueue(alias: str, *args: Any) -> Any:
    return tasks.send.using(backend=alias).enqueue(*args)


def count(using: str) -> int:
    return Job.objects.using(using).count()


@pytest.fixture
def same_id() -> Callable[[int], int]:
    """Two jobs of one id, in two databases: the one in the other has that of the first."""

    def copy(job_id: int) -> int:
        row = Job.objects.values().get(pk=job_id)
        return int(Job.objects.using("other").create(**{**row, "payload": '{"not": "it"}'}).pk)

    return copy


# -- several aliases ----------------------------------------------------------------------------------


@several
@pytest.mark.parametrize(
    ("alias", "using"), [("default", "default"), ("fast", "default"), ("far", "other"), ("farther", "other")]
)
def test_each_has_its_database(alias: str, using: str) -> None:
    result = enqueue(alias, 1)
    assert (count("default"), count("other")) == ((1, 0) if using == "default" else (0, 1))
    assert (result.backend, result.task.backend, task_backends[alias].using) == (alias, alias, using)
    found = task_backends[alias].get_result(result.id)
    assert (found.task, found.backend) == (result.task, alias)
    result.refresh()
    assert result.cancel()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED


@several
def test_aliases_of_one_database_know_each_others_results() -> None:
    """A result says by which it was enqueued, whoever is asked."""
    for alias, neighbour in (("fast", "default"), ("default", "fast"), ("farther", "far")):
        found = task_backends[neighbour].get_result(enqueue(alias, 1).id)
        assert (found.backend, found.task.backend) == (alias, alias)


@several
def test_aliases_of_two_databases_do_not() -> None:
    result = enqueue("default", 1)
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["far"].get_result(result.id)
    assert task_backends["far"].cancel(result.id) is False


@several
def test_one_id_in_two_databases(same_id: Callable[[int], int]) -> None:
    """Each backend means its own."""
    result = enqueue("default", 1)
    assert same_id(int(result.id)) == int(result.id)
    with pytest.raises(TaskResultDoesNotExist):  # that one is no task
        task_backends["far"].get_result(result.id)
    assert result.cancel()
    assert (count("default"), count("other")) == (0, 1)


@several
def test_signals_tell_the_alias() -> None:
    heard: list[Any] = []

    def hear(sender: Any, task_result: Any, **kwargs: Any) -> None:
        heard.append((sender, task_result.backend))

    task_enqueued.connect(hear)
    try:
        enqueue("far", 1)
        enqueue("fast", 1)
    finally:
        task_enqueued.disconnect(hear)
    assert heard == [(AlkstoreBackend, "far"), (AlkstoreBackend, "fast")]


@override_settings(TASKS={"far": {**THERE, "QUEUES": ["slow"]}, "near": {**HERE, "QUEUES": ["quick"]}})
def test_without_a_default_alias() -> None:
    """A project may have none, as long as its tasks name theirs."""
    task = tasks.send.using(backend="far", queue_name="slow")
    result = task.enqueue(1)
    assert task.get_result(result.id).backend == "far"
    assert count("other") == 1
    assert "slow" in served.queues("other")
    assert "slow" not in served.queues("default")
    assert "quick" in served.queues("default")
    with pytest.raises(task_backends.exception_class):
        tasks.send.enqueue(1)
    with pytest.raises(InvalidTask, match="Queue 'quick' is not valid for backend"):
        task.using(queue_name="quick")


def test_an_alias_that_was_taken_out() -> None:
    """Its results are found by those that look into the same database, and can be used."""
    with several:
        result = enqueue("fast", 1)
        far = enqueue("far", 2)
    found = task_backends["default"].get_result(result.id)
    assert (found.backend, found.args) == ("default", [1])
    found.refresh()
    assert found.cancel()
    with pytest.raises(task_backends.exception_class):
        far.refresh()


def test_an_alias_that_has_moved_to_another_database(same_id: Callable[[int], int]) -> None:
    """An old result, looked up where it is, never becomes another job of that number."""
    with override_settings(TASKS={"default": THERE}):
        result = tasks.send.enqueue("old")
    live = factories.live(id=int(result.id))
    with override_settings(TASKS={"default": HERE, "far": THERE}):
        found = task_backends["far"].get_result(result.id)
        assert (found.backend, found.args) == ("far", ["old"])
        found.refresh()
        assert found.cancel()
    assert Job.objects.filter(pk=live).exists()
    assert not Job.objects.using("other").exists()


# -- routers ------------------------------------------------------------------------------------------


@override_settings(DATABASE_ROUTERS=[f"{__name__}.ToOther"], TASKS={"default": HERE, "near": HERE})
def test_the_router_decides_where_no_alias_does() -> None:
    result = tasks.send.enqueue(1)
    assert (count("default"), count("other")) == (0, 1)
    assert served.databases() == ["other"]
    job = Queue("default").claim_one("w")
    assert job is not None
    result.refresh()
    assert (result.status, result.worker_ids) == (TaskResultStatus.RUNNING, ["w"])
    assert result.cancel()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert not Queue("default").ack(job)


@override_settings(
    DATABASE_ROUTERS=[f"{__name__}.ToOther"],
    TASKS={"default": {**HERE, "OPTIONS": {"DATABASE": "default"}}, "routed": HERE},
)
def test_an_alias_overrules_the_router() -> None:
    tasks.send.enqueue(1)
    assert (count("default"), count("other")) == (1, 0)
    enqueue("routed", 1)
    assert (count("default"), count("other")) == (1, 1)
    assert served.databases() == ["default", "other"]


# -- settings that change -----------------------------------------------------------------------------


def test_overridden_and_back() -> None:
    before = task_backends["default"]
    with override_settings(TASKS={"default": THERE}):
        assert task_backends["default"] is not before
        tasks.send.enqueue(1)
        with override_settings(TASKS={"default": {"BACKEND": f"{FAMILY}.backends.dummy.DummyBackend"}}):
            tasks.send.enqueue(2)
        with override_settings(
            TASKS={"default": {"BACKEND": f"{FAMILY}.backends.immediate.ImmediateBackend"}}
        ):
            assert tasks.send.enqueue(3).return_value == 3
        tasks.send.enqueue(4)
    tasks.send.enqueue(5)
    rows = Job.objects.using("other").order_by("pk")
    assert [unseal(row.payload).args for row in rows] == [[1], [4]]
    assert count("default") == 1


def test_overridden_in_another_thread() -> None:
    """Settings are those of the process, though each thread has backends of its own."""
    found: list[str] = []
    ready, go = threading.Event(), threading.Event()

    def work() -> None:
        found.append(task_backends["default"].using)
        ready.set()
        go.wait(30)
        found.append(task_backends["default"].using)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(30)
    with override_settings(TASKS={"default": THERE}):
        go.set()
        thread.join()
    assert found == ["default", "other"]


def test_queues_that_change() -> None:
    """Tasks that were declared before are judged by the settings of now."""
    with override_settings(TASKS={"default": {**HERE, "QUEUES": ["mail"]}}):
        with pytest.raises(InvalidTask, match="Queue 'default' is not valid"):
            tasks.send.enqueue(1)
        result = tasks.receipt.enqueue(1)
        assert {"mail"} <= {*served.queues("default")}
    with override_settings(TASKS={"default": {**HERE, "QUEUES": ["only"]}}):
        assert tasks.receipt.get_result(result.id).task.queue_name == "mail"
        result.refresh()
        assert result.cancel()


# -- before the apps are ready ------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "tasks.py").write_text(
        f"""
from datetime import timedelta
from {FAMILY} import task as plain_task
from alkstore_django import backends, backoff, exceptions, signals, tasks
from alkstore_django.tasks import task

@task(queue_name="mail", backend="far")
def ours(value): return value

@task
async def coroutine(value): return value

@plain_task
def plain(value): return value

LATER = ours.using(run_after=timedelta(days=1), priority=5)
"""
    )
    # The first module of the app that is imported, while the registry of apps is being filled.
    (tmp_path / "early" / "__init__.py").write_text("from . import tasks")
    (tmp_path / "early" / "settings.py").touch()
    yield tmp_path


def test_tasks_are_declared_before_the_apps_are_ready(project: Path) -> None:
    apps = ["early", "alkstore_django", *(() if NATIVE else ("django_tasks",))]
    program = f"""
from django.conf import settings
settings.configure(
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {str(project / "db")!r}}}}},
    INSTALLED_APPS={apps!r},
    TASKS={{"default": {HERE!r}, "far": {{"BACKEND": {OURS!r}, "QUEUES": ["mail"]}}}},
    USE_TZ=True,
)
from early import tasks
from django.apps import apps
assert not apps.ready
try:
    tasks.ours.using(queue_name="unknown")
except Exception as error:
    assert type(error).__name__.startswith("InvalidTask"), error
else:
    raise AssertionError("not validated")
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
results = [each.enqueue(1) for each in (tasks.ours, tasks.coroutine, tasks.plain, tasks.LATER)]
call_command("alkworker", batch=True, verbosity=0)
for result in results:
    result.refresh()
print([str(result.status) for result in results], results[0].return_value)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=project,
        env={"PYTHONPATH": f"{project}:{Path(__file__).parents[2]}", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['SUCCESSFUL', 'SUCCESSFUL', 'SUCCESSFUL', 'READY'] 1"
