"""``manage.py alkenqueue``: what is enqueued, and what is refused before anything is written."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from alkstore_django.compat import NATIVE
from alkstore_django.models import Attempt, Job
from alkstore_django.queues import Queue
from tests.contract import tasks
from tests.contract.clerk import NO, settle
from tests.contract.test_wait import meanwhile, outcome
from tests.factories import columns, now, within_a_second

pytestmark = pytest.mark.django_db(databases=["default", "other"])

SEND = "tests.contract.tasks.send"
OURS = "alkstore_django.backends.AlkstoreBackend"
FAR = {"BACKEND": OURS, "OPTIONS": {"DATABASE": "other"}}


def alkenqueue(*arguments: object) -> str:
    output = StringIO()
    call_command("alkenqueue", *map(str, arguments), stdout=output)
    return output.getvalue()


def enqueued(*arguments: object) -> int:
    """The id that was printed."""
    return int(alkenqueue(*arguments))


def refused(*arguments: object) -> str:
    """Why nothing was enqueued."""
    with pytest.raises(CommandError) as raised:
        alkenqueue(*arguments)
    assert not Job.objects.exists()
    assert not Job.objects.using("other").exists()
    return str(raised.value)


def test_it_prints_the_id() -> None:
    job_id = enqueued(SEND)
    found = tasks.send.get_result(str(job_id))
    assert (found.args, found.kwargs, found.task) == ([], {}, tasks.send)


def test_arguments() -> None:
    job_id = enqueued(SEND, "--args", '[{"é": [1, null]}]', "--kwargs", '{"when": "soon", "x": 1.5}')
    found = tasks.send.get_result(str(job_id))
    assert (found.args, found.kwargs) == ([{"é": [1, None]}], {"when": "soon", "x": 1.5})


@pytest.mark.parametrize("path", ["contract.receipt", "tests.contract.tasks.receipt"])
def test_a_task_by_its_name_and_by_its_path(path: str) -> None:
    job_id = enqueued(path, "--args", "[7]")
    assert columns(job_id, "queue", "priority", "max_attempts") == ("mail", 5, 7)


@pytest.mark.parametrize("path", [SEND, "tests.contract.tasks.plain", "tests.contract.tasks.told"])
def test_options(path: str) -> None:
    job_id = enqueued(path, "--args", "[1]", "--queue", "mail", "--priority", -7)
    assert columns(job_id, "queue", "priority") == ("mail", -7)


def test_in_a_while() -> None:
    def enqueue() -> None:
        assert columns(enqueued(SEND, "--in", "10m"), "run_at")[0] - now() in (600, 601)

    within_a_second(enqueue)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2030-01-01T00:00+00:00", datetime(2030, 1, 1, tzinfo=UTC)),
        ("2030-01-01T00:00Z", datetime(2030, 1, 1, tzinfo=UTC)),
        ("2030-01-01 00:00", datetime(2030, 1, 1, 5, tzinfo=UTC)),
        ("2030-01-01T00:00:00+01:00", datetime(2029, 12, 31, 23, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("use_tz", [True, False])
def test_at_a_moment(text: str, moment: datetime, use_tz: bool) -> None:
    with override_settings(USE_TZ=use_tz, TIME_ZONE="America/New_York"):
        assert columns(enqueued(SEND, "--at", text), "run_at") == (moment.timestamp(),)


def test_backends_and_databases() -> None:
    with override_settings(TASKS={**settings.TASKS, "far": FAR}):
        assert tasks.send.using(backend="far").get_result(str(enqueued(SEND, "--backend", "far")))
        assert Job.objects.using("other").filter(pk=enqueued(SEND, "--database", "other")).exists()
        assert Job.objects.filter(pk=enqueued(SEND, "--database", "default")).exists()
        assert (Job.objects.count(), Job.objects.using("other").count()) == (1, 2)


def test_databases_that_leave_a_choice() -> None:
    with override_settings(TASKS={**settings.TASKS, "far": FAR, "farther": FAR}):
        why = refused(SEND, "--database", "other")
        assert why == (
            "TASKS has 2 aliases (far, farther) with jobs in database 'other': choose one with --backend."
        )
    assert "TASKS has no alias with jobs in database 'other'" in refused(SEND, "--database", "other")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["no.such.task"], "no task 'no.such.task' is registered"),
        (["tests.app.tasks.write_line"], "the module 'tests.app.tasks' has no task of that name"),
        (["os.remove"], "'os' is not in an installed app"),
        ([SEND, "--args", "1,2"], "--args is not JSON: Extra data"),
        ([SEND, "--args", '{"a": 1}'], '--args must be a JSON list such as \'[1, "a"]\', not {"a": 1}.'),
        ([SEND, "--kwargs", "[1]"], "--kwargs must be a JSON object such as"),
        ([SEND, "--kwargs", "{to: 1}"], "--kwargs is not JSON"),
        ([SEND, "--args", "[NaN]"], "args[0]"),
        ([SEND, "--args", "[1, 2]"], "cannot be called so: too many positional arguments."),
        (["contract.receipt"], "(order: 'int') -> 'None' cannot be called so: missing a required argument"),
        (["tests.contract.tasks.told"], "cannot be called so: missing a required argument: 'value'."),
        ([SEND, "--in", "soon"], "it must be a duration such as 90s, 10m, 2h or 1d, not 'soon'."),
        ([SEND, "--in", "-5"], "it must be a duration such as"),
        ([SEND, "--at", "tomorrow"], "'tomorrow' is no moment such as 2030-01-31T08:00"),
        ([SEND, "--at", "2030-02-31T08:00"], "is no moment: "),
        ([SEND, "--at", "1960-01-01T08:00"], "run_at must lie"),
        ([SEND, "--in", "1s", "--at", "2030-01-31T08:00"], "not allowed with argument"),
        ([SEND, "--priority", "101"], "priority must be a whole number between -100 and 100."),
        ([SEND, "--priority", "high"], "invalid int value: 'high'"),
        ([SEND, "--queue", " x"], "begins or ends with white space"),
        ([SEND, "--backend", "none"], "TASKS has no alias 'none'; it has default."),
        ([SEND, "--database", "none"], "There is no database 'none'"),
        ([SEND, "--wait", "-1"], "-1 is not a number of seconds"),
        ([SEND, "--wait", "long"], "invalid duration value: 'long'"),
    ],
    ids=str,
)
def test_bad_input(arguments: list[str], why: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        found = refused(*arguments)
    assert why in found
    assert [query["sql"] for query in captured if "INSERT" in query["sql"]] == []


def test_a_queue_that_the_backend_does_not_have() -> None:
    with override_settings(TASKS={"default": {"BACKEND": OURS, "QUEUES": ["default"]}}):
        assert "Queue 'mail' is not valid for backend" in refused(SEND, "--queue", "mail")


# -- to wait ------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_to_wait_for_the_end() -> None:
    def end(verdict: str, **options: Any) -> Any:
        job = Queue("default").claim_one("w")
        assert job is not None
        assert settle(outcome(job.claim, verdict, **options)) == []

    with meanwhile(lambda: end("ACK", value='{"a":1}')):
        assert alkenqueue(SEND, "--wait").splitlines()[1:] == ['{"a": 1}']
    with meanwhile(lambda: end("DEAD", failure=NO)):
        with pytest.raises(CommandError) as raised:
            alkenqueue(SEND, "--wait", 60)
        assert "has failed: no" in str(raised.value) or "has failed: ValueError: no" in str(raised.value)


@pytest.mark.django_db(transaction=True)
def test_to_wait_for_what_leaves_no_history() -> None:
    def end() -> None:
        job = Queue("default").claim_one("w")
        assert job is not None
        with transaction.atomic():
            assert settle(outcome(job.claim, "DISCARD", failure=NO, ttl=60)) == []
            Attempt.objects.all().delete()

    why = "has failed: nothing is known of why"
    with meanwhile(end), pytest.raises(CommandError, match=why):
        alkenqueue(SEND, "--wait", 60)


@pytest.mark.django_db(transaction=True)
def test_to_wait_in_vain() -> None:
    with pytest.raises(CommandError, match=r"Job (\d+) is enqueued. Job id=\1 has not ended within 0.1 s."):
        alkenqueue(SEND, "--wait", 0.1)
    assert Job.objects.count() == 1


def test_to_wait_for_what_has_no_results() -> None:
    family = "django.tasks" if NATIVE else "django_tasks"
    dummy = {"BACKEND": f"{family}.backends.dummy.DummyBackend"}
    why = "The backend 'dummy' is not ours: nobody can wait for its results"
    tasks_setting = {**settings.TASKS, "dummy": dummy}
    with override_settings(TASKS=tasks_setting), pytest.raises(CommandError, match=why):
        alkenqueue(SEND, "--backend", "dummy", "--wait", 1)
