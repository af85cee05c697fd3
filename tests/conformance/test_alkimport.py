"""``alkimport``: the waiting tasks of the real django-tasks-db become jobs of ours."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.test import override_settings
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from alkstore_django.compat import TaskResultStatus, task_backends
from alkstore_django.models import Job
from alkstore_django.moving import Source
from alkstore_django.tasks import task
from alkstore_django.testing.contract_tasks import SAID, give, say, vanish
from tests.conformance import theirs
from tests.in_process import work
from tests.processes import Process, wait_until

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)

THEIRS = theirs.TASKS["default"]
OURS = {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "QUEUES": []}
LATER = timezone.now().replace(microsecond=0) + datetime.timedelta(hours=1)


@pytest.fixture(autouse=True)
def before() -> Iterator[None]:
    """The settings of the project as it was."""
    SAID.clear()
    with override_settings(TASKS={"default": THEIRS}):
        yield


def alkimport(*options: str, ours: dict[str, Any] = OURS, **more: Any) -> str:
    output = StringIO()
    with override_settings(TASKS={"default": ours, **more}):
        call_command("alkimport", *options, stdout=output, stderr=output)
    return output.getvalue()


def found() -> list[Any]:
    """The results of what waits in our tables, in the order in which it will run."""
    with override_settings(TASKS={"default": OURS}):
        ids = Job.objects.order_by("-priority", "run_at", "id").values_list("id", flat=True)
        return [task_backends["default"].get_result(str(job_id)) for job_id in ids]


@committed
def test_what_waits_is_moved_with_all_that_it_says() -> None:
    say.enqueue("first")
    say.using(queue_name="mail", priority=7, run_after=LATER).enqueue(value={"é": [1, None]})
    say.enqueue("second")
    assert alkimport() == (
        "default  alkstore_django.testing.contract_tasks.say  2 moved\n"
        "mail  alkstore_django.testing.contract_tasks.say  1 moved\n"
        "3 tasks moved.\n"
    )
    assert not DBTaskResult.objects.exists()
    delayed, first, second = found()
    assert (delayed.args, delayed.kwargs) == ([], {"value": {"é": [1, None]}})
    assert (delayed.task.queue_name, delayed.task.priority, delayed.task.run_after) == ("mail", 7, LATER)
    assert (first.task, first.args, second.args) == (say, ["first"], ["second"])
    work("default", "mail")
    assert SAID == ["first", "second"]


def test_in_the_order_in_which_their_workers_would_run_them() -> None:
    for priority, value in ((0, "c"), (5, "a"), (0, "d"), (-5, "e"), (5, "b")):
        say.using(priority=priority).enqueue(value)
    alkimport()
    assert [result.args for result in found()] == [["a"], ["b"], ["c"], ["d"], ["e"]]


def test_a_dry_run_changes_nothing() -> None:
    say.enqueue(1)
    vanish.enqueue()
    DBTaskResult.objects.filter(task_path__endswith="vanish").update(task_path="gone.tasks.send")
    output = StringIO()
    with override_settings(TASKS={"default": OURS}), pytest.raises(CommandError, match=r"^1 task left\.$"):
        call_command("alkimport", "--dry-run", stdout=output, stderr=output)
    assert "contract_tasks.say  1 would be moved\n" in output.getvalue()
    assert "1 task would be moved.\n" in output.getvalue()
    assert (DBTaskResult.objects.count(), Job.objects.count()) == (2, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task_path": "gone.tasks.send"}, "no task 'gone.tasks.send' is registered"),
        ({"task_path": "alkstore_django.testing.contract_tasks.gone"}, "has no task of that name"),
        ({"task_path": "alkstore_django.testing.contract_tasks.impostor"}, "has no task of that name"),
        ({"queue_name": "forbidden"}, "Queue 'forbidden' is not valid for backend"),
        ({"args_kwargs": {"args": [1]}}, "KeyError: 'kwargs'"),
    ],
)
def test_what_our_enqueue_would_refuse_is_left_and_told_of(changes: Any, reason: str) -> None:
    bad = give.enqueue(1)
    say.enqueue("good")
    DBTaskResult.objects.filter(pk=bad.id).update(**changes)
    output = StringIO()
    ours = {**OURS, "QUEUES": ["default", "mail"]}
    with override_settings(TASKS={"default": ours}), pytest.raises(CommandError, match=r"^1 task left\.$"):
        call_command("alkimport", stdout=output, stderr=output)
    assert reason in output.getvalue()
    assert "1 task moved." in output.getvalue()
    assert [str(pk) for pk in DBTaskResult.objects.values_list("pk", flat=True)] == [bad.id]
    assert [result.args for result in found()] == [["good"]]


@task(unique=True)
def once(value: Any) -> None: ...


def test_unique_tasks_stay_unique() -> None:
    for value in (1, 2, 1, 1):
        once.enqueue(value)
    output = alkimport("-v", "2")
    assert "once  4 moved, 2 of them to a job with the same unique key\n" in output
    assert [result.args for result in found()] == [[1], [2]]
    assert output.count(f" is {found()[0].id}\n") == 3
    assert not DBTaskResult.objects.exists()


@pytest.mark.parametrize("name", ["self", "task", "args", "run_after"])
def test_names_of_arguments(name: str) -> None:
    give.enqueue(1)
    DBTaskResult.objects.update(args_kwargs={"args": [], "kwargs": {name: 1}})
    assert "1 task moved." in alkimport()
    assert [result.kwargs for result in found()] == [{name: 1}]


def test_what_has_begun_or_ended_stays_where_it_is() -> None:
    for status in TaskResultStatus.values:
        result = give.enqueue(status)
        DBTaskResult.objects.filter(pk=result.id).update(status=status)
    output = alkimport()
    assert "Note: 1 task of backend 'default' RUNNING" in output
    assert "1 task moved." in output
    assert [result.args for result in found()] == [["READY"]]
    assert set(DBTaskResult.objects.values_list("status", flat=True)) == {"RUNNING", "FAILED", "SUCCESSFUL"}


def test_of_backends_that_are_not_ours_nothing_is_moved() -> None:
    give.enqueue("theirs")
    output = alkimport(ours=THEIRS, other={**OURS})
    assert "Note: 1 task of backend 'default' READY; TASKS has none of ours of that name." in output
    assert "0 tasks moved." in output
    assert DBTaskResult.objects.count() == 1


def test_of_an_alias_that_is_not_the_default() -> None:
    with override_settings(TASKS={"default": THEIRS, "bulk": THEIRS}):
        give.using(backend="bulk").enqueue("bulk")
        give.enqueue("default")
    assert "1 task moved." in alkimport(ours=THEIRS, bulk=OURS)
    with override_settings(TASKS={"default": THEIRS, "bulk": OURS}):
        (job,) = Job.objects.all()
        assert task_backends["bulk"].get_result(str(job.pk)).task.backend == "bulk"
    assert [row.args_kwargs["args"] for row in DBTaskResult.objects.all()] == [["default"]]


def test_the_new_ids_are_told_on_demand() -> None:
    result = give.enqueue(1)
    output = alkimport("-v", "2")
    assert f"{result.id} is {Job.objects.get().pk}\n" in output


@override_settings(TASKS={"default": OURS})
def test_each_batch_is_moved_as_a_whole_or_not_at_all() -> None:
    with override_settings(TASKS={"default": THEIRS}):
        for number in range(5):
            give.enqueue(number)
    batches = Source("default").move(size=2)
    assert len(next(batches).moved) == 2
    assert (DBTaskResult.objects.count(), Job.objects.count()) == (3, 2)
    with (
        mock.patch.object(DBTaskResult.objects._queryset_class, "delete", side_effect=DatabaseError),
        pytest.raises(DatabaseError),
    ):
        next(batches)
    assert (DBTaskResult.objects.count(), Job.objects.count()) == (3, 2)
    assert [len(batch.moved) for batch in Source("default").move(size=2)] == [2, 1]
    assert sorted(result.args[0] for result in found()) == [0, 1, 2, 3, 4]


@override_settings(TASKS={"default": OURS})
def test_what_their_worker_takes_meanwhile_is_theirs() -> None:
    with override_settings(TASKS={"default": THEIRS}):
        ids = [give.enqueue(number).id for number in range(3)]
    batches = Source("default").move(size=1)
    next(batches)
    DBTaskResult.objects.get(pk=ids[1]).claim("their worker")
    assert [len(batch.moved) + len(batch.left) for batch in batches] == [0, 1]
    assert [result.args for result in found()] == [[0], [2]]
    assert DBTaskResult.objects.get().status == TaskResultStatus.RUNNING


@committed
@override_settings(TASKS={"default": OURS})
def test_beside_a_worker_of_theirs_each_task_goes_one_way() -> None:
    numbers = iter(range(201))
    enqueue_there(numbers, 1)
    options = ("--interval=0", "--no-startup-delay", "--skip-checks")
    worker = Process("-m", "django", "db_worker", *options, DJANGO_SETTINGS_MODULE=theirs.__name__)
    try:
        wait_until(lambda: DBTaskResult.objects.successful().exists(), worker, what="a task that was run")
        for _ in range(20):
            enqueue_there(numbers, 10)
            for _ in Source("default").move(size=3):
                pass
        wait_until(lambda: not DBTaskResult.objects.exclude(status="SUCCESSFUL").exists(), worker)
        assert worker.stop() == 0, worker
    finally:
        worker.reap()
    done = [row.args_kwargs["args"][0] for row in DBTaskResult.objects.all()]
    here = [result.args[0] for result in found()]
    assert sorted(done + here) == list(range(201))
    assert here


def enqueue_there(numbers: Iterator[int], count: int) -> None:
    with override_settings(TASKS={"default": THEIRS}), transaction.atomic():
        for number in islice(numbers, count):
            give.enqueue(number)


class Router:
    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "django_tasks_database" else None


def test_a_move_is_one_transaction() -> None:
    routers = [f"{__name__}.Router"]
    wrong = pytest.raises(CommandError, match="in database 'other', our jobs in 'default'")
    with override_settings(DATABASE_ROUTERS=routers), wrong:
        alkimport()


def test_before_their_migrations() -> None:
    missing = pytest.raises(CommandError, match="Database 'default' has no table nowhere")
    with mock.patch.object(DBTaskResult._meta, "db_table", "nowhere"), missing:
        alkimport()
