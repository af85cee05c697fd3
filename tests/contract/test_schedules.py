"""Register, list, change, pause and resume schedules, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import schedules
from alkstore_django.models import ScheduledTask, ScheduleOptions
from alkstore_django.schedules import NameTaken
from tests import factories
from tests.app import tasks
from tests.contract.scheduling import foreign, set_next

pytestmark = pytest.mark.django_db(transaction=True)


def stored(name: str, *columns: str) -> Any:
    return factories.columns(name, *columns, model=ScheduledTask)  # type: ignore[arg-type]


def test_a_schedule_as_it_is_stored() -> None:
    made = schedules.register(
        "nightly", "0 3 * * mon-fri", tasks.add, args=(1,), kwargs={"b": 2}, timezone="Europe/Berlin"
    )
    assert made == schedules.get("nightly") and schedules.list() == [made]
    assert (made.name, made.queue, made.task) == ("nightly", "default", "tests.app.tasks.add")
    assert made.payload == '{"__honker_task__":{"task":"tests.app.tasks.add","args":[1],"kwargs":{"b":2}}}'
    assert (made.expression, made.canonical) == ("0 3 * * mon-fri", "0 3 * * 1-5")
    assert (made.timezone, made.catch_up, made.overlap) == ("Europe/Berlin", "latest", True)
    assert (made.owner, made.priority, made.expires, made.max_attempts) == ("admin", 0, None, 3)
    assert (made.enabled, made.withdrawn, made.skipped, made.problem) == (True, False, 0, None)
    assert made.last_fire_at is None and made.portable and made.why_not_portable is None
    assert made.cron is not None
    assert made.next_fire_at == made.cron.next_after(datetime.now(UTC))
    assert schedules.soonest() == made.next_fire_at
    assert made.upcoming(2) == [made.next_fire_at, made.cron.next_after(made.next_fire_at)]
    assert stored("nightly", "cron_expr", "enabled", "expires_s") == ("0 3 * * 1-5", 1, None)


def test_what_other_programs_made_is_theirs() -> None:
    foreign(cron_expr="0 0 13 * 5", due=datetime(2099, 1, 1, tzinfo=UTC))
    found = schedules.get("theirs")
    assert found is not None
    assert (found.owner, found.catch_up, found.overlap, found.timezone) == ("foreign", "all", True, "UTC")
    assert (found.task, found.payload, found.portable) == (None, '{"to": 1}', True)
    assert found.upcoming(1, after=datetime(2026, 1, 1, tzinfo=UTC))[0].weekday() == 4
    for change in (
        lambda: schedules.register("theirs", "@daily", tasks.nothing),
        lambda: schedules.update("theirs", priority=1),
    ):
        with pytest.raises(NameTaken, match="another program"):
            change()
    assert schedules.pause("theirs") and not schedules.pause("theirs")
    assert schedules.resume("theirs") and not schedules.resume("theirs")
    assert not ScheduleOptions.objects.exists()
    assert schedules.unregister("theirs") and not schedules.unregister("theirs")


def test_an_unchanged_schedule_keeps_its_next_boundary() -> None:
    schedules.register("hourly", "@every 1h", tasks.add, args=(1, 2))
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=7)
    set_next("hourly", soon)
    assert schedules.register("hourly", "@every 60m", tasks.add, args=(1, 2)).next_fire_at == soon
    changed = schedules.register("hourly", "@every 1h", tasks.add, args=(1, 3), priority=4, max_attempts=5)
    assert (changed.next_fire_at, changed.priority, changed.max_attempts) == (soon, 4, 5)
    assert '"args":[1,3]' in changed.payload
    later = schedules.register("hourly", "@every 2h", tasks.add, args=(1, 3))
    assert later.next_fire_at is not None and later.next_fire_at > soon + timedelta(hours=1)


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ({"priority": 3}, False),
        ({"args": [5, 6]}, False),
        ({"catch_up": "all"}, False),
        ({"overlap": False}, False),
        ({"queue": "other"}, False),
        ({"expires": 60}, False),
        ({"expression": "0 3 * * 0-6"}, False),  # the same instants
        ({"expression": "0 5 * * *"}, True),
        ({"timezone": "Asia/Tokyo"}, True),
        ({"task": tasks.nothing}, False),
        ({"payload": {"raw": True}}, False),
    ],
)
def test_what_an_update_moves(change: dict[str, Any], moves: bool) -> None:
    before = schedules.register("nightly", "0 3 * * *", tasks.add, args=(1, 2), timezone="Europe/Berlin")
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    set_next("nightly", due)
    after = schedules.update("nightly", **change)
    assert (after.next_fire_at != due) == moves
    for key, value in change.items():
        if key not in ("args", "task", "payload"):
            assert getattr(after, key) == value
    assert after.timezone == change.get("timezone", before.timezone)  # Q518
    if "args" in change:
        assert '"args":[5,6]' in after.payload
    if "payload" in change:
        assert (after.payload, after.task) == ('{"raw":true}', None)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"expression": "61 * * * *"}, "expression: "),
    ({"expression": "0 0 31 2 *"}, "expression: .*never"),
    ({"expression": 5}, "expression: "),
    ({"timezone": "Amerca/New_York"}, "timezone: "),
    ({"timezone": 3}, "timezone: "),
    ({"task": "tests.app.tasks.missing"}, "task: "),
    ({"task": "os.system"}, "task: "),
    ({"task": print}, "task: "),
    ({"task": None}, "task: "),
    ({"payload": 1}, "task: "),
    ({"args": (object(), 1)}, "args"),
    ({"args": (float("nan"), 1)}, "args"),
    ({"args": "ab"}, "args: "),
    ({"args": (1, 2, 3)}, "args: "),
    ({"kwargs": {"c": 1}}, "args: "),
    ({"kwargs": [1]}, "kwargs: "),
    ({"queue": " x"}, "queue"),
    ({"name": ""}, "name"),
    ({"name": "a\n"}, "name"),
    ({"name": 1}, "name"),
    ({"catch_up": "some"}, "catch_up: "),
    ({"overlap": 1}, "overlap: "),
    ({"enabled": None}, "enabled: "),
    ({"priority": "high"}, "priority"),
    ({"expires": -1}, "expires"),
    ({"max_attempts": 0}, "max_attempts"),
    ({"using": "other"}, "using: "),
    ({"task": None, "payload": {1, 2}, "queue": "q", "args": ()}, "payload"),
    ({"task": None, "payload": 1, "args": ()}, "queue: "),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_input(wrong: dict[str, Any], message: str, django_assert_num_queries: Any) -> None:
    good: dict[str, Any] = {"name": "n", "expression": "0 3 * * *", "task": tasks.add, "args": (1, 2)}
    with transaction.atomic(), django_assert_num_queries(0), pytest.raises(ValueError, match=message):
        schedules.register(**{**good, **wrong})
    assert schedules.list() == []


def test_a_bad_update_changes_nothing() -> None:
    before = schedules.register("n", "0 3 * * *", tasks.add, args=(1, 2))
    for wrong in ({"expression": "x", "priority": 2}, {"priority": 2, "args": [object()]}, {"timezone": "x"}):
        with transaction.atomic(), pytest.raises(ValueError):
            schedules.update("n", **wrong)
    assert schedules.get("n") == before
    with pytest.raises(ValueError, match="no schedule"):
        schedules.update("another", priority=1)


def test_a_pause_lasts_and_a_resume_counts_from_now() -> None:
    schedules.register("hourly", "0 * * * *", tasks.nothing)
    assert schedules.pause("hourly")
    set_next("hourly", datetime.now(UTC) - timedelta(hours=3))
    paused = schedules.register("hourly", "0 * * * *", tasks.nothing, priority=2)
    assert (paused.enabled, paused.next_fire_at, paused.withdrawn) == (False, None, False)
    assert schedules.tick() == [] and schedules.soonest() is None
    assert schedules.resume("hourly")
    resumed = schedules.get("hourly")
    assert resumed is not None and resumed.cron is not None
    assert resumed.next_fire_at == resumed.cron.next_after(datetime.now(UTC))
    assert schedules.tick() == []
    assert not schedules.pause("nothing") and not schedules.resume("nothing")


def test_it_begins_paused() -> None:
    made = schedules.register("later", "@daily", tasks.nothing, enabled=False)
    assert not made.enabled
    schedules.resume("later")
    assert schedules.register("later", "@daily", tasks.nothing, enabled=False).enabled
    assert schedules.register("later", "@daily", tasks.nothing, enabled=True).enabled
    assert not schedules.register("later", "@daily", tasks.nothing, enabled=False).enabled


def test_it_is_a_part_of_the_callers_transaction() -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        schedules.register("n", "@daily", tasks.nothing)
        raise RuntimeError
    assert schedules.list() == [] and not ScheduleOptions.objects.exists()


def test_an_unchanged_one_is_only_read() -> None:
    schedules.register("n", "@daily", tasks.nothing)
    with CaptureQueriesContext(connection) as queries:
        schedules.register("n", "@daily", tasks.nothing)
    assert all(query["sql"].startswith("SELECT") for query in queries)


@contextmanager
def unregistered_at_once() -> Iterator[None]:
    """Somebody deletes what is committed, whenever another statement begins outside a transaction."""
    begun: list[str] = []

    def work(execute: Any, sql: str, *rest: Any) -> Any:
        if begun and not connection.in_atomic_block:
            with factories.another_session() as cursor:
                for model in (ScheduledTask, ScheduleOptions):
                    cursor.execute(f"DELETE FROM {model._meta.db_table}")
        begun.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(work):
        yield
    assert begun


@pytest.mark.parametrize("before", [None, "@daily", "@hourly"])
def test_what_is_registered_may_be_gone_at_once(before: str | None) -> None:
    """New, changed or as it was: it is what was written, and no error."""
    if before:
        schedules.register("n", before, tasks.nothing)
    with unregistered_at_once():
        made = schedules.register("n", "@hourly", tasks.nothing)
    assert (made.name, made.expression, made.enabled) == ("n", "@hourly", True)


def test_what_is_updated_may_be_gone_at_once() -> None:
    schedules.register("n", "@daily", tasks.nothing)
    with unregistered_at_once():
        assert schedules.update("n", priority=3).priority == 3
