"""``manage.py alkrequeue`` and ``alkstore_django.dead_letters``: which are meant; counts that are true."""

from __future__ import annotations

import builtins
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import dead_letters, letters, reviving
from alkstore_django.failures import from_exception, of
from alkstore_django.models import Attempt, DeadJob, Job
from alkstore_django.queues import Queue
from alkstore_django.runtime import pacing
from alkstore_django.turns import Verdict
from tests import factories
from tests.contract.stages import claim, settle
from tests.contract.uniques import unique
from tests.factories import at, dead, where

pytestmark = pytest.mark.django_db(databases=["default", "other"])

TASK = '{"__honker_task__":{"task":"shop.tasks.send","args":[],"kwargs":{}}}'


class Told(Exception):
    def __init__(self, output: str, error: CommandError) -> None:
        super().__init__(output, str(error))
        self.output, self.error, self.code = output, str(error), error.returncode


def alkrequeue(*arguments: object, errors: StringIO | None = None) -> str:
    """What it prints. Raises ``Told`` when the exit code is not 0."""
    output = StringIO()
    try:
        call_command("alkrequeue", *map(str, arguments), stdout=output, stderr=errors or StringIO())
    except CommandError as error:
        raise Told(output.getvalue(), error) from error
    return output.getvalue()


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Operator:
    """Sits at a terminal: what is typed there, until nobody is there any more, and what was asked."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.asked: list[str] = []

    def answer(self, prompt: str) -> str:
        self.asked.append(prompt)
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Operator:
    found = Operator()
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(builtins, "input", found.answer)
    return found


def letter(job_id: int, queue: str = "mail", payload: str = TASK, **columns: Any) -> int:
    return dead(job_id, queue, payload, **{"last_error": "boom", **columns})


def task(name: str) -> str:
    return TASK.replace("shop.tasks.send", name)


# -- which are meant ------------------------------------------------------------------------------------

TRACEBACK = "Traceback (most recent call last):\n late"
BROKEN = '{"__honker_task__":{"task":"shop.tasks.send"'


@pytest.fixture
def some() -> dict[str, int]:
    """Letters by name."""
    found = {
        "a": letter(1, "mail"),
        "b": letter(2, "mail", task("shop.tasks.report"), died_at=at(-7200), last_error="no [x] 100%"),
        "c": letter(3, "Mail", task("shop.tasks.send_all"), died_at=at(-100_000)),
        "d": letter(4, "pdf", "not json", last_error=None),
        "e": letter(5, "pdf", BROKEN, last_error="late"),
        "f": letter(2**40, "pdf ", '{"plain": 1}', last_error=f"Boom\n{TRACEBACK}"),
        "g": letter(-7, "pdf", '{"x": 1, ' + task("shop.tasks.send")[1:], last_error="näh"),
    }
    Attempt.objects.create(job_id=4, kind=Attempt.FAILED, error_class="shop.errors.OldError", ended_at=1)
    Attempt.objects.create(job_id=4, kind=Attempt.LOST, error_class="shop.errors.GiftError", ended_at=2)
    Attempt.objects.create(job_id=4, kind=Attempt.REQUEUED, ended_at=3)
    return found


WHICH: list[tuple[dict[str, Any], str]] = [
    ({"queue": "mail"}, "ab"),
    ({"queue": "Mail"}, "c"),
    ({"queue": ["mail", "pdf"]}, "abdeg"),
    ({"queue": "pdf "}, "f"),
    ({"queue": "unknown"}, ""),
    ({"task": "shop.tasks.send"}, "ag"),
    ({"task": "shop.tasks.send*"}, "acg"),
    ({"task": "*send"}, "ag"),
    ({"task": "*.tasks.*"}, "abcg"),
    ({"task": "*"}, "abcg"),
    ({"task": ["shop.tasks.report", "*_all"]}, "bc"),
    ({"task": "shop.tasks.sen"}, ""),
    ({"task": "SHOP.TASKS.SEND"}, ""),
    ({"task": "shop?tasks.send"}, ""),
    ({"error": "boom"}, "ac"),
    ({"error": "Boom"}, "f"),
    ({"error": "late"}, "e"),
    ({"error": "oo"}, "acf"),
    ({"error": "[x] 100%"}, "b"),
    ({"error": "_"}, ""),
    ({"error": "näh"}, "g"),
    ({"error": "GiftError"}, "d"),
    ({"error": "shop.errors."}, "d"),
    ({"error": "OldError"}, ""),
    ({"since": timedelta(hours=1)}, "adefg"),
    ({"since": timedelta(hours=3)}, "abdefg"),
    ({"until": timedelta(hours=1)}, "bc"),
    ({"since": timedelta(hours=3), "until": timedelta(hours=1)}, "b"),
    ({"since": datetime(2001, 1, 1, tzinfo=UTC)}, "abcdefg"),
    ({"until": 1_000}, ""),
    ({"queue": "mail", "task": "*report", "error": "no", "until": timedelta(hours=1)}, "b"),
    ({"queue": "mail", "error": "late"}, ""),
    ({"everything": True}, "abcdefg"),
]


def as_flags(given: dict[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if name == "everything":
            yield "--all"
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, timedelta):
                each = f"{round(each.total_seconds()) // 60}m"
            elif isinstance(each, datetime):
                each = each.isoformat()
            elif isinstance(each, int) and not isinstance(each, bool):
                each = datetime.fromtimestamp(each, tz=UTC).isoformat()
            if name != "everything":
                yield from (f"--{name}", each)


@pytest.mark.parametrize(("given", "expected"), WHICH, ids=lambda value: str(value))
@pytest.mark.parametrize("door", ["command", "function"])
def test_which_are_meant(door: str, given: dict[str, Any], expected: str, some: dict[str, int]) -> None:
    """By a dry run, by the count, and in the end."""
    filters = {name: value for name, value in given.items() if name != "everything"}
    assert dead_letters.count(**filters) == len(expected)
    if door == "command":
        looked = json.loads(alkrequeue("--dry-run", "--json", *as_flags(given)))
        assert sum(each["count"] for each in looked["meant"]) == len(expected)
        assert DeadJob.objects.count() == len(some)
        done = json.loads(alkrequeue("--noinput", "--json", *as_flags(given)))
        assert (done["requeued"], done["held"], done["meant"]) == (len(expected), 0, looked["meant"])
    else:
        assert dead_letters.requeue(**given) == len(expected)
    assert "".join(name for name, job_id in some.items() if where(job_id) == "live") == expected
    assert DeadJob.objects.count() == len(some) - len(expected)


def test_what_a_worker_has_buried() -> None:
    """Its message and its class, and not what the traceback has."""
    queue = Queue("q")
    queue.enqueue(1)
    job = queue.claim_one("w")
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ZeroDivisionError("the message\nof two lines") from None
    except ZeroDivisionError as error:
        failure = from_exception(error)
        assert job is not None and queue.fail(job, error)
    assert "test_alkrequeue" in failure.traceback
    found = {
        text: dead_letters.count(error=text)
        for text in ("the message", "two lines", "ZeroDivision", "builtins.Zero", "test_alkrequeue", "inner")
    }
    assert found == {
        "the message": 1,
        "two lines": 1,
        "ZeroDivision": 1,
        "builtins.Zero": 1,
        "test_alkrequeue": 0,
        "inner": 0,
    }


def test_the_end_of_a_long_message() -> None:
    queue = Queue("q")
    queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None and queue.fail(job, ValueError("x" * 1990 + " end" + "y" * 500))
    assert dead_letters.count(error="x end") == 1


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_a_text_that_is_stored_in_other_words(text: str) -> None:
    letter(1, last_error=of(ValueError, f"it says {text}.").summary)
    letter(2)
    assert dead_letters.count(error=text) == 1


def test_the_bounds_of_time() -> None:
    for job_id, moment in ((1, 999), (2, 1_000), (3, 1_001)):
        letter(job_id, died_at=moment)
    letter(4, died_at=at(-3_000))
    assert [dead_letters.count(since=1_000), dead_letters.count(until=1_000)] == [3, 1]
    assert dead_letters.count(since=datetime.fromtimestamp(1_000, tz=UTC), until=1_001) == 1
    hour = timedelta(hours=1)
    assert [dead_letters.count(since=hour), dead_letters.count(until=hour)] == [1, 3]


def test_ids(some: dict[str, int]) -> None:
    assert alkrequeue("--noinput", "--id", 1, 4, "--id", 2**40) == (
        "mail  shop.tasks.send  1\npdf  (no task)  1\npdf   (no task)  1\n3 dead letters requeued.\n"
    )
    assert [name for name, job_id in some.items() if where(job_id) == "live"] == ["a", "d", "f"]


def test_ids_that_are_not_there(queue: Queue) -> None:
    waiting = queue.enqueue(1)
    letter(waiting + 1), letter(waiting + 2, "pdf")
    with pytest.raises(Told) as told:
        alkrequeue("--noinput", "--queue", "mail", "--id", waiting, waiting + 1, waiting + 2, waiting + 1)
    assert told.value.output == "mail  shop.tasks.send  1\n1 dead letter requeued.\n"
    assert (told.value.error, told.value.code) == ("2 dead letters of 3 not requeued.", 1)
    with pytest.raises(Told, match="2 dead letters of 2 would not be requeued"):
        alkrequeue("--dry-run", "--id", waiting, waiting + 1)


# -- what is done ---------------------------------------------------------------------------------------


def test_a_new_life_with_its_history() -> None:
    letter(7, priority=4, max_attempts=2, created_at=at(-500))
    assert alkrequeue("--all", "--noinput") == "mail  shop.tasks.send  1\n1 dead letter requeued.\n"
    assert factories.columns(7, "queue", "payload", "priority", "attempts", "max_attempts") == (
        *("mail", TASK),
        *(4, 0, 2),
    )
    assert factories.history(7) == [("requeued", 2, None)]


def test_it_counts_and_asks(operator: Operator) -> None:
    for job_id in range(1, 4):
        letter(job_id)
    letter(4, "pdf", "{}")
    counted = "mail  shop.tasks.send  3\npdf  (no task)  1\n"
    operator.answers += ["n", "", "y"]
    for _ in range(2):
        assert alkrequeue("--all") == f"{counted}Nothing was requeued.\n"
    assert alkrequeue("--all", "--limit", 3) == f"{counted}3 dead letters requeued.\n"
    assert alkrequeue("--all", "--limit", 5) == "pdf  (no task)  1\nNothing was requeued.\n"
    assert alkrequeue("--queue", "mail") == "No dead letter matches.\n"
    assert operator.asked == [
        *["Requeue 4 dead letters? [y/N] "] * 2,
        "Requeue 3 of 4 dead letters? [y/N] ",
        "Requeue 1 dead letter? [y/N] ",
    ]


def test_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    letter(1)
    for stream in (StringIO("y\n"), None):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(Told) as told:
            alkrequeue("--all")
        assert told.value.error == "Nobody can be asked here: give --noinput, or --dry-run to look."
        assert told.value.output == ""
    assert where(1) == "dead"


def test_limit() -> None:
    for job_id in range(1, 11):
        letter(job_id)
    assert alkrequeue("--all", "--limit", 4, "--noinput").endswith("4 dead letters requeued.\n")
    assert sorted(Job.objects.values_list("pk", flat=True)) == [1, 2, 3, 4]
    assert dead_letters.requeue(queue="mail", limit=2) == 2
    assert dead_letters.requeue(queue="mail", limit=100) == 4


def test_as_json() -> None:
    letter(1), letter(2), letter(3, "pdf", "{}")
    document = {
        "database": "default",
        "dry_run": True,
        "interrupted": False,
        "meant": [
            {"queue": "mail", "task": "shop.tasks.send", "count": 2},
            {"queue": "pdf", "task": "(no task)", "count": 1},
        ],
        "requeued": 0,
        "held": 0,
        "renumbered": [],
    }
    assert json.loads(alkrequeue("--all", "--json", "--dry-run")) == document
    done = {**document, "dry_run": False, "requeued": 3}
    assert json.loads(alkrequeue("--all", "--json", "--noinput")) == done


def test_more_names_than_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alkstore_django.management.commands.alkrequeue.SHOWN", 2)
    for job_id in range(1, 6):
        letter(job_id, f"queue {min(job_id, 4)}", "{}")
    expected = "(others)  (others)  3\nqueue 1  (no task)  1\nqueue 2  (no task)  1\n"
    assert alkrequeue("--all", "--dry-run") == expected


def test_names_that_control_terminals() -> None:
    letter(1, "a\x1b[2J", task("\\u001b[1m"))
    assert alkrequeue("--all", "--dry-run") == "a\\x1b[2J  \\x1b[1m  1\n"


def test_another_database() -> None:
    letter(1)
    DeadJob.objects.using("other").create(id=1, queue="mail", payload="{}")
    assert alkrequeue("--all", "--noinput", "--database", "other").endswith("1 dead letter requeued.\n")
    assert where(1) == "dead"
    assert dead_letters.count(using="other") == 0
    assert dead_letters.count() == 1


def test_unique_tasks_whose_key_another_job_has() -> None:
    wants = unique()
    ids = []
    for number in (1, 2):
        result = wants.enqueue(number)
        settle(claim(result), Verdict.DEAD, failure=of(ValueError, "no"))
        ids.append(int(result.id))
    wants.enqueue(1)
    output = alkrequeue("--queue", wants.queue_name, "--noinput")
    assert output.endswith("1 dead letter requeued; 1 stays: another job has its key.\n")
    assert [where(job_id) for job_id in ids] == ["dead", "live"]
    assert dead_letters.requeue(queue=wants.queue_name) == 0


def test_an_id_that_a_live_job_has(queue: Queue) -> None:
    taken = queue.enqueue("the other")
    letter(taken), letter(taken + 5)
    output = alkrequeue("--all", "--noinput")
    assert output.endswith("2 dead letters requeued, 1 of them under new ids.\n")
    assert DeadJob.objects.count() == 0 and Job.objects.count() == 3


def test_each_letter_once_even_if_it_dies_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes back with a higher id."""
    ids = [letter(job_id) for job_id in range(1, 8)]
    revive: Callable[..., reviving.Batch] = reviving.revive

    def and_die(using: str, batch: Any, wanted: Any) -> reviving.Batch:
        done = revive(using, batch, wanted)
        Job.objects.all().delete()
        for job_id in done.revived:
            letter(job_id), letter(job_id + 1000)
        return done

    monkeypatch.setattr(reviving, "revive", and_die)
    monkeypatch.setattr(reviving, "BATCH", 2)
    monkeypatch.setattr(letters, "STEP", 3)
    assert dead_letters.requeue(everything=True) == len(ids)


# -- counts that are true ----------------------------------------------------------------------------


def test_what_has_changed_since_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody requeued one, pruned one, and one died again of something else."""
    for job_id in range(1, 5):
        letter(job_id)
    revive: Callable[..., reviving.Batch] = reviving.revive

    def late(using: str, ids: Any, wanted: Any) -> reviving.Batch:
        assert revive(using, [1]).revived == {1: 1}
        DeadJob.objects.filter(pk=2).delete()
        factories.change(3, model=DeadJob, last_error="another")
        return revive(using, ids, wanted)

    monkeypatch.setattr(reviving, "revive", late)
    assert alkrequeue("--error", "boom", "--noinput").endswith("1 dead letter requeued.\n")
    assert [where(job_id) for job_id in range(1, 5)] == ["live", "", "dead", "live"]


def test_a_task_is_judged_again_when_its_row_is_locked() -> None:
    letter(1)
    wanted = letters.asked("default", task="*.report")
    assert reviving.revive("default", [1], wanted) == reviving.Batch()


def test_an_error_in_the_midst_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for job_id in range(1, 8):
        letter(job_id)
    revive: Callable[..., reviving.Batch] = reviving.revive

    def break_down(using: str, ids: Any, wanted: Any) -> reviving.Batch:
        if 5 in ids:
            raise OperationalError("gone")
        return revive(using, ids, wanted)

    monkeypatch.setattr(reviving, "revive", break_down)
    monkeypatch.setattr(reviving, "BATCH", 2)
    errors = StringIO()
    with pytest.raises(Told) as told:
        alkrequeue("--all", "--noinput", errors=errors)
    assert told.value.error == "Database 'default' does not answer: gone"
    assert errors.getvalue() == "Before that: 4 dead letters requeued. It may have been a batch more.\n"
    assert DeadJob.objects.count() == 3


# -- in small pieces ---------------------------------------------------------------------------------


def test_bounded_steps_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "STEP", 7)
    monkeypatch.setattr(letters, "HEAVY_STEP", 3)
    monkeypatch.setattr(reviving, "BATCH", 5)
    for job_id in range(-20, 80, 2):
        letter(job_id, f"queue {job_id % 3}", task(f"t{job_id % 4}"))
    batches: list[int] = []
    revive: Callable[..., reviving.Batch] = reviving.revive

    def count(using: str, ids: Any, wanted: Any) -> reviving.Batch:
        batches.append(len(ids))
        return revive(using, ids, wanted)

    monkeypatch.setattr(reviving, "revive", count)
    expected = DeadJob.objects.filter(queue="queue 1").count()
    assert dead_letters.requeue(queue="queue 1") == expected
    assert batches == [5] * (expected // 5) + [expected % 5] * bool(expected % 5)
    assert dead_letters.requeue(task="t2") + dead_letters.requeue(task="t0") == 50 - expected


def test_a_batch_is_few_statements() -> None:
    """However many it moves."""
    numbers = []
    for count in (2, 90):
        for job_id in range(1, count + 1):
            letter(job_id)
        with CaptureQueriesContext(connection) as captured:
            assert reviving.revive("default", range(1, count + 1)).revived
        numbers.append(len(captured))
        Job.objects.all().delete()
    assert numbers[1] - numbers[0] <= 1 and numbers[1] < 15, numbers  # SQLite takes 999 values at once


def test_with_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr("alkstore_django.management.commands.alkrequeue.time.sleep", rests.append)
    for job_id in range(1, 61):
        letter(job_id)
    assert alkrequeue("--all", "--noinput", "--rate", "100/s").endswith("60 dead letters requeued.\n")
    assert len(rests) == 6  # ten at a time
    for job_id in range(101, 104):
        letter(job_id)
    rests.clear()
    alkrequeue("--queue", "mail", "--noinput", "--rate", "1/m", "--limit", 2)
    assert len(rests) == 2 and 59 < rests[0] <= 60


def test_without_a_rate_it_rests_as_long_as_it_works() -> None:
    pace = pacing.Pace()
    assert (pace.size(100), pace.rest(100, 0.02)) == (100, 0.02)


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviving, "BATCH", 2)
    for job_id in range(1, 6):
        letter(job_id)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    alkrequeue("--queue", "mail", "--noinput", "--limit", 4)
    lines = [line.rpartition("]")[2].strip() for line in terminal.getvalue().split("\r")]
    assert lines == ["", "2 of 4", "4 of 4", "", ""]
    assert "\n" not in terminal.getvalue()


# -- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "Say which: with --id, --queue, --task, --error, --since, --until, or --all."),
        (["--noinput"], "Say which"),
        (["--limit", 5, "--noinput"], "Say which"),
        (["--all", "--queue", "mail", "--noinput"], "--all goes with nothing that means less"),
        (["--all", "--id", 1, "--noinput"], "--all goes with nothing that means less"),
        (["--all", "--json"], "--json needs --dry-run or --noinput"),
        (["--id", "x"], "invalid job_id value: 'x'"),
        (["--id", 2**70], "is not the id of a job"),
        (["--since", "soon"], "is no moment"),
        (["--since", "0s"], "at least 1|from 1"),
        (["--since", "2030-02-31"], "is no moment"),
        (["--since", "1h", "--until", "2h", "--noinput"], "since must lie before until"),
        (["--error", "", "--noinput"], "error must not be empty"),
        (["--queue", "", "--noinput"], "queue must not be an empty name"),
        (["--queue", "\udcff", "--noinput"], "has characters that no name has"),
        (["--task", "a\0b", "--noinput"], "has characters that no name has"),
        (["--all", "--limit", 0], "is not from 1"),
        (["--all", "--rate", "0"], "is not a rate"),
        (["--all", "--rate", "-5/s"], "expected one argument|is not a rate"),
        (["--all", "--rate", "fast"], "is not a rate such as 500/s"),
        (["--all", "--database", "nowhere"], "There is no database 'nowhere'"),
    ],
    ids=str,
)
def test_bad_flags(arguments: list[Any], error: str) -> None:
    letter(1)
    with pytest.raises(Told, match=error):
        alkrequeue(*arguments)
    assert where(1) == "dead"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, ValueError, "Say which dead letters"),
        ({"queue": 7}, TypeError, "'int' object is not iterable|queue"),
        ({"queue": [7]}, TypeError, "queue must be a name, or several, not 7"),
        ({"queue": ""}, ValueError, "queue must not be an empty name"),
        ({"task": [None]}, TypeError, "task must be"),
        ({"error": 5}, TypeError, "error must be a text"),
        ({"error": ""}, ValueError, "error must not be empty"),
        ({"since": "2h"}, TypeError, "since"),
        ({"since": timedelta(-1)}, ValueError, "since"),
        ({"until": float("nan")}, ValueError, "until"),
        ({"until": datetime(2030, 1, 1)}, ValueError, "until must be an aware datetime"),
        ({"since": 100, "until": 100}, ValueError, "since must lie before until"),
        ({"queue": "q", "limit": 0}, ValueError, "limit"),
        ({"queue": "q", "limit": "1"}, TypeError, "limit"),
    ],
    ids=str,
)
def test_bad_input(given: Any, error: type[Exception], message: str) -> None:
    with transaction.atomic():
        with CaptureQueriesContext(connection) as captured, pytest.raises(error, match=message):
            dead_letters.requeue(**given)
        assert captured.captured_queries == []
        letter(1)


def test_awaited() -> None:
    letter(1)

    async def scenario() -> tuple[int, int]:
        return await dead_letters.acount(queue="mail"), await dead_letters.arequeue(queue="mail")

    assert async_to_sync(scenario)() == (1, 1)


def test_in_the_caller_s_transaction() -> None:
    letter(1)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert dead_letters.requeue(everything=True) == 1
        raise ZeroDivisionError
    assert where(1) == "dead"


def test_invalid_utf8(sqlite: None) -> None:
    factories.ask(
        "INSERT INTO _honker_dead (id, queue, payload, last_error) VALUES "
        "(9, CAST(x'71ff' AS TEXT), CAST(x'7bff' AS TEXT), CAST(x'626fff6f6d' AS TEXT))"
    )
    letter(1)
    assert dead_letters.count(task="shop.*") == 1
    assert dead_letters.count(error="boom") == 1
    assert alkrequeue("--all", "--noinput") == (
        "mail  shop.tasks.send  1\nq\\xff  (no task)  1\n2 dead letters requeued.\n"
    )
