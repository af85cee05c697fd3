"""Schedules that the code and the settings declare, written when a worker or scheduler starts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import reload
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alkstore_django import declarations, schedules
from alkstore_django.compat import NATIVE
from alkstore_django.schedules import schedule
from tests.app import coroutines, tasks
from tests.contract.scheduling import at, db_now, foreign, made, set_next

IMMEDIATE = f"{'django.tasks' if NATIVE else 'django_tasks'}.backends.immediate.ImmediateBackend"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the code declares: nothing yet."""
    declared: dict[str, Any] = {}
    monkeypatch.setattr(declarations, "_declared", declared)
    yield declared


def test_what_the_code_declares_is_written() -> None:
    assert schedule("0 3 * * *", args=(1, 2), timezone="Europe/Berlin")(tasks.add) is tasks.add
    schedule("@hourly", name="more", args=(3, 4), priority=7, overlap=False, catch_up="none")(tasks.add)
    schedule("@every 5s", enabled=False)(coroutines.list_threads)
    assert schedules.list() == []  # never at import
    report = schedules.sync()
    assert report.added == ["tests.app.tasks.add", "more", "tests.app.coroutines.list_threads"]
    first, more, paused = (at(name) for name in report.added)
    assert (first.owner, first.timezone, first.catch_up) == ("code", "Europe/Berlin", "latest")
    assert '"args":[1,2]' in first.payload
    assert (more.expression, more.canonical, more.priority, more.overlap) == (
        "@hourly",
        "0 * * * *",
        7,
        False,
    )
    assert (paused.enabled, paused.withdrawn) == (False, False)


def test_a_second_sync_only_reads() -> None:
    schedule("0 3 * * *")(tasks.nothing)
    schedules.sync()
    before = at("tests.app.tasks.nothing")
    with CaptureQueriesContext(connection) as queries:
        report = schedules.sync()
    assert report.unchanged == ["tests.app.tasks.nothing"] and at("tests.app.tasks.nothing") == before
    assert all(query["sql"].startswith("SELECT") for query in queries)


@pytest.mark.parametrize(
    ("expression", "zone", "moves"),
    [
        ("0 3 * * *", "UTC", False),
        ("0  3 * * sun-sat", "UTC", False),
        ("0 5 * * *", "UTC", True),
        ("0 3 * * *", "Asia/Tokyo", True),
        ("*/60 3 * * *", "UTC", True),  # the same table of another DST class
    ],
)
def test_what_moves_the_next_boundary(code: dict[str, Any], expression: str, zone: str, moves: bool) -> None:
    schedule("0 3 * * *", name="s", timezone="UTC")(tasks.nothing)
    schedules.sync()
    due = db_now() + timedelta(seconds=3)
    set_next("s", due)
    code.clear()
    schedule(expression, name="s", timezone=zone, priority=3)(tasks.nothing)
    assert schedules.sync().changed == ["s"]
    assert (at("s").next_fire_at != due) == moves
    assert (at("s").priority, at("s").timezone, at("s").expression) == (3, zone, expression)


def test_what_is_not_declared_any_more_is_disabled_and_told(code: dict[str, Any], caplog: Any) -> None:
    schedule("* * * * *", name="s")(tasks.nothing)
    schedules.sync()
    kept = dict(code)
    code.clear()
    assert schedules.sync().withdrawn == ["s"]
    assert "nothing declares it" in caplog.text
    assert (at("s").enabled, at("s").withdrawn) == (False, True)
    assert schedules.sync().withdrawn == []
    set_next("s", datetime(2026, 1, 1, tzinfo=UTC))
    code.update(kept)
    assert schedules.sync().changed == ["s"]
    back = at("s")
    assert (back.enabled, back.withdrawn) == (True, False)
    assert back.next_fire_at is not None and back.next_fire_at > db_now() - timedelta(seconds=1)


def test_a_pause_outlives_every_sync(code: dict[str, Any]) -> None:
    schedule("* * * * *", name="s")(tasks.nothing)
    schedules.sync()
    schedules.pause("s")
    kept = dict(code)
    for declared in (kept, {}, kept):
        code.clear()
        code.update(declared)
        schedules.sync()
        assert (at("s").enabled, at("s").withdrawn) == (False, False)
    code.clear()
    schedule("*/5 * * * *", name="s")(tasks.nothing)
    schedules.sync()
    assert not at("s").enabled
    schedules.resume("s")
    assert at("s").enabled


def test_what_was_withdrawn_can_be_paused(code: dict[str, Any]) -> None:
    schedule("* * * * *", name="s")(tasks.nothing)
    schedules.sync()
    kept = dict(code)
    code.clear()
    schedules.sync()
    assert schedules.pause("s") and not schedules.pause("s")
    code.update(kept)
    schedules.sync()
    assert not at("s").enabled and schedules.resume("s")


def test_the_code_can_switch_it_off_and_on(code: dict[str, Any]) -> None:
    for enabled in (True, False, True):
        code.clear()
        schedule("* * * * *", name="s", enabled=enabled)(tasks.nothing)
        schedules.sync()
        assert at("s").enabled == enabled


def test_names_of_others_are_left_alone(caplog: Any) -> None:
    foreign("theirs")
    before = made("by hand")
    schedule("@daily", name="theirs")(tasks.nothing)
    schedule("@daily", name="by hand")(tasks.nothing)
    report = schedules.sync()
    assert set(report.refused) == {"theirs", "by hand"} and report.withdrawn == []
    assert "another program" in report.refused["theirs"] and "register()" in report.refused["by hand"]
    assert caplog.text.count("is left as it is") == 2
    assert at("by hand") == before and at("theirs").owner == "foreign"


def test_only_the_code_changes_what_it_declares() -> None:
    schedule("@daily", name="s")(tasks.nothing)
    schedules.sync()
    for change in (
        lambda: schedules.update("s", priority=1),
        lambda: schedules.register("s", "@hourly", tasks.nothing),
    ):
        with pytest.raises(schedules.NameTaken, match="@schedule"):
            change()
    assert schedules.unregister("s") and schedules.sync().added == ["s"]


def test_the_settings_declare_too(settings: Any) -> None:
    settings.ALKSTORE = {
        "SCHEDULES": {
            "s": {"task": "tests.app.tasks.add", "expression": "@daily", "args": [1, 2], "timezone": "UTC"},
            "raw": {"queue": "q", "payload": {"a": 1}, "expression": "@hourly"},
        }
    }
    assert schedules.sync().added == ["s", "raw"]
    assert (at("s").owner, at("s").task, at("raw").payload) == ("settings", "tests.app.tasks.add", '{"a":1}')
    settings.ALKSTORE = {}
    schedule("@daily", name="s", args=[1, 2], timezone="UTC")(tasks.add)
    report = schedules.sync()
    assert (report.changed, report.withdrawn, at("s").owner) == (["s"], ["raw"], "code")


def test_a_wrong_entry_stops_nobody(settings: Any) -> None:
    good = {"task": "tests.app.tasks.nothing", "expression": "@daily"}
    settings.ALKSTORE = {"SCHEDULES": {"s": good}}
    schedules.sync()
    wrong = {
        "s": {**good, "expression": "x"},
        "a": {**good, "task": "tests.app.tasks.missing"},
        "b": {**good, "when": 1},
        "c": {"task": "tests.app.tasks.nothing"},
        "d": "@daily",
        "e\n": good,
    }
    settings.ALKSTORE = {"SCHEDULES": {**wrong, "f": good}}
    report = schedules.sync()
    assert set(report.refused) == set(wrong) and report.added == ["f"]
    assert report.withdrawn == [] and at("s").enabled


def test_a_backend_that_was_taken_away(settings: Any) -> None:
    """What it says of the schedule is not known, which is no reason to withdraw it."""
    given = {**settings.TASKS, "near": settings.TASKS["default"]}
    settings.TASKS = given
    schedule("@daily", name="s")(tasks.nothing.using(backend="near"))
    schedule("@daily", name="other")(tasks.nothing)
    assert schedules.sync().added == ["s", "other"]
    settings.TASKS = {"default": given["default"]}
    report = schedules.sync()
    assert set(report.refused) == {"s"} and report.unchanged == ["other"] and report.withdrawn == []


def test_one_name_for_two() -> None:
    schedule("@daily")(tasks.nothing)
    with pytest.raises(ValueError, match="name: there are two schedules"):
        schedule("@hourly")(tasks.nothing)
    with pytest.raises(ValueError, match="name: there are two schedules"):
        schedule("@hourly", name="tests.app.tasks.nothing")(tasks.list_threads)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"expression": "x"}, "expression: "),
        ({"timezone": "Mars"}, "timezone: "),
        ({"args": (1, 2)}, "args: "),
        ({"catch_up": "some"}, "catch_up: "),
    ],
)
def test_a_wrong_declaration_fails_at_import(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule(**{"expression": "@daily", **given})(tasks.nothing)
    with pytest.raises(TypeError, match="above @task"):
        schedule("@daily")(print)


def test_a_module_that_is_loaded_again(code: dict[str, Any]) -> None:
    from tests.app import scheduled

    code.clear()
    reload(scheduled)
    reload(scheduled)
    assert list(code) == ["tests.app.scheduled.tick_tock"]


def test_tasks_that_run_at_once_have_no_schedules(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": IMMEDIATE, "QUEUES": []}}
    schedule("@daily")(tasks.nothing)
    assert schedules.sync() == schedules.SyncReport()


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_schedule_is_in_the_database_of_its_task(settings: Any) -> None:
    settings.TASKS = {
        "default": settings.TASKS["default"],
        "far": {**settings.TASKS["default"], "OPTIONS": {"DATABASE": "other"}},
    }
    schedule("@daily")(tasks.nothing.using(backend="far"))
    assert schedules.sync() == schedules.SyncReport()
    assert schedules.sync(using="other").added == ["tests.app.tasks.nothing"]
    made = schedules.register("s", "@daily", tasks.nothing.using(backend="far"))
    assert schedules.get("s") is None and schedules.get("s", using="other") == made
