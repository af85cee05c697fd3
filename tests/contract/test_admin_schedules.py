"""The admin's pages of schedules: what they show of any row, what they let whom do, and what they refuse."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import DELETION, LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alkstore_django import declarations, schedule_updates, schedules
from alkstore_django.admin import schedule_actions
from alkstore_django.models import Job, ScheduledTask, ScheduleOptions
from tests import factories
from tests.app import tasks
from tests.contract.scheduling import unregister_before
from tests.pages import EVIL, SCHEDULES, column, field, page, reader

pytestmark = pytest.mark.django_db

DUE = int(datetime(2026, 3, 28, 1, 30, tzinfo=UTC).timestamp())
NEW = {"name": "made", "expression": "0 3 * * *", "task": "tests.app.tasks.add", "args": "[1, 2]"}
NEW |= {"timezone": "Europe/Berlin", "catch_up": "latest", "overlap": "on", "enabled": "on"}


@pytest.fixture(autouse=True)
def nothing_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "_declared", {})


def nightly(name: str = "nightly", **options: Any) -> None:
    given = {"args": (1, 2), "timezone": "Europe/Berlin", **options}
    schedules.register(name, "30 2 * * *", tasks.add, **given)
    ScheduledTask.objects.filter(pk=name).update(next_fire_at=DUE)


def foreign(name: str = "theirs", cron_expr: str = "0 0 13 * 5", **columns: Any) -> None:
    row = {"queue": "emails", "payload": '{"to": 1}', "next_fire_at": DUE, **columns}
    ScheduledTask.objects.create(name=name, cron_expr=cron_expr, **row)


def declared(name: str = "declared", expression: str = "@hourly", **options: Any) -> None:
    schedules.schedule(expression, name=name, **options)(tasks.nothing)
    assert name not in schedules.sync().refused


def url(name: str, what: str = "change") -> str:
    return f"{SCHEDULES}{name}/{what}/"


def operate(client: Client, action: str, *names: str, **data: Any) -> Any:
    return client.post(SCHEDULES, {"action": action, "_selected_action": names, **data}, follow=True)


def told(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


# -- what is shown --------------------------------------------------------------------------------------


def test_the_list(admin_client: Client) -> None:
    nightly()
    declared(enabled=False)
    foreign()
    ScheduleOptions.objects.filter(pk="nightly").update(skipped=7, last_fire_at=DUE - 86_400)
    text = page(admin_client, SCHEDULES)
    assert column(text, "name_text") == ["declared", "nightly", "theirs"]
    assert column(text, "when") == [
        "@hourly UTCminute 0 of every hour",
        "30 2 * * * Europe/Berlinat 02:30 every day",
        "0 0 13 * 5 UTCat 00:00 on day 13 of the month if that is Friday",
    ]
    assert column(text, "what") == ["tests.app.tasks.nothing", "tests.app.tasks.add", "-"]
    assert column(text, "next_fire") == ["-", "03/28/2026 1:30 a.m.", "03/28/2026 1:30 a.m."]
    assert column(text, "last_fire") == ["-", "03/27/2026 1:30 a.m.", "-"]
    assert column(text, "skipped") == ["0", "7", "0"]
    assert column(text, "owner") == ["code", "admin", "foreign"]
    assert re.findall(r'field-is_enabled">.*?alt="(\w+)"', text) == ["False", "True", "True"]


def test_the_page_of_a_schedule(admin_client: Client) -> None:
    nightly()
    foreign()
    text = page(admin_client, url("nightly"))
    assert field(text, "when_text") == "30 2 * * * (Europe/Berlin)"
    assert field(text, "words_text") == "at 02:30 every day"
    assert field(text, "upcoming").startswith("03/28/2026 1:30 a.m.03/29/2026 1 a.m.03/30/2026 12:30 a.m.")
    assert "second pass" in field(text, "portability")
    assert 'name="expression"' in text
    assert '<option value="tests.app.tasks.nothing">' in text, "the known tasks are on offer"
    theirs = page(admin_client, url("theirs"))
    assert field(theirs, "payload_text").split() == ["{", '"to":', "1", "}"]
    assert field(theirs, "queue_text") == "emails"
    assert field(theirs, "catch_up_text") == "all"
    assert field(theirs, "portability") == "honker fires it at the same instants"
    assert 'name="expression"' not in theirs


GARBAGE: list[dict[str, Any]] = [
    {"cron_expr": "no cron", "payload": "{"},
    {"cron_expr": "", "payload": "", "queue": ""},
    {"cron_expr": EVIL, "payload": EVIL, "queue": EVIL},
    {"next_fire_at": 2**62, "priority": 2**62, "expires_s": -(2**62), "max_attempts": -5, "enabled": 7},
    {"next_fire_at": -1, "payload": "[" * 5_000},
]


@pytest.mark.parametrize("columns", GARBAGE)
def test_rows_of_other_programs_may_be_anything(admin_client: Client, columns: dict[str, Any]) -> None:
    name = EVIL if columns.get("queue") == EVIL else "odd/näme _5F?"
    foreign(name, **columns)
    text = page(admin_client, SCHEDULES, q="", owner="foreign")
    assert EVIL not in text
    (link,) = re.findall(r'field-name_text"><a href="([^"]*)"', text)
    assert EVIL not in page(admin_client, unescape(link).partition("?")[0])
    for action in ("pause", "resume", "run"):
        assert EVIL not in operate(admin_client, action, name).content.decode()
        assert EVIL not in operate(admin_client, action, name, confirmed="yes").content.decode()


@pytest.mark.only("sqlite")
def test_rows_that_only_sqlite_holds(admin_client: Client) -> None:
    columns = "name, queue, cron_expr, payload, priority, expires_s, next_fire_at, enabled, max_attempts"
    for row in (
        ("''", "x'ff'", "x'fe'", "x'fd'", "'p'", "'e'", "'n'", "'yes'", "'m'"),
        ("x'ff61'", "''", "''", "''", "0", "0", "0", "1", "3"),
    ):
        factories.ask(f"INSERT INTO _honker_scheduler_tasks ({columns}) VALUES ({', '.join(row)})")
    text = page(admin_client, SCHEDULES)
    assert column(text, "name_text") == ["(no name)", "\\xffa"]


def test_what_stands_still(admin_client: Client) -> None:
    foreign("bad", "61 * * * *")
    schedules.tick()
    text = page(admin_client, SCHEDULES)
    assert column(text, "problem")[0].startswith("In the minute field, '61'")
    assert field(page(admin_client, url("bad")), "state_text").startswith("stands still: In the minute")


def test_search_and_filters(admin_client: Client) -> None:
    nightly()
    declared()
    foreign()
    foreign("bad", "61 * * * *")
    schedules.pause("declared")
    schedules.tick()
    nightly("changed by another")
    ScheduledTask.objects.filter(pk="changed by another").update(cron_expr="5 5 5 5 5")
    every = {"bad", "changed by another", "declared", "nightly", "theirs"}
    foreigners = {"bad", "changed by another", "theirs"}
    for data, names in (
        ({"owner": "admin"}, {"nightly"}),
        ({"owner": "code"}, {"declared"}),
        ({"owner": "settings"}, set()),
        ({"owner": "foreign"}, foreigners),
        ({"state": "off"}, {"declared"}),
        ({"state": "broken"}, {"bad"}),
        ({"state": "on"}, every - {"bad", "declared"}),
        ({"state": "on", "owner": "foreign"}, foreigners - {"bad"}),
        ({"q": "tasks.add"}, {"nightly", "changed by another"}),
        ({"q": "emails"}, {"bad", "theirs"}),
        ({"q": "night"}, {"nightly"}),
        ({"owner": "x", "state": "y"}, every),
    ):
        found = column(page(admin_client, SCHEDULES, **data), "name_text")
        assert set(found) == names, data


def test_the_queries_do_not_grow_with_the_rows(admin_client: Client) -> None:
    def queries(data: dict[str, str]) -> int:
        page(admin_client, SCHEDULES, **data)  # the first visit fills caches of Django's
        with CaptureQueriesContext(connection) as captured:
            page(admin_client, SCHEDULES, **data)
        return len(captured)

    counted = []
    for rows in (3, 45):
        for number in range(rows):
            schedules.register(f"ours {number}", f"{number} * * * *", tasks.nothing)
        if not counted:
            foreign()
        counted.append([queries(data) for data in ({}, {"owner": "foreign"}, {"state": "on", "q": "o"})])
    assert counted[0] == counted[1]


def test_without_time_zones(admin_client: Client, settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "America/Bogota"
    nightly()
    assert column(page(admin_client, SCHEDULES), "next_fire") == ["03/27/2026 8:30 p.m."]
    assert field(page(admin_client, url("nightly")), "upcoming").startswith("03/27/2026 8:30 p.m.")


# -- the form -------------------------------------------------------------------------------------------


def test_a_new_schedule(admin_client: Client) -> None:
    data = {**NEW, "kwargs": "", "queue": "mail", "priority": "5", "expires": "10m", "max_attempts": "2"}
    assert admin_client.post(f"{SCHEDULES}add/", data).status_code == 302
    made = schedules.get("made")
    assert made is not None
    assert made.payload == '{"__honker_task__":{"task":"tests.app.tasks.add","args":[1,2],"kwargs":{}}}'
    assert (made.expression, made.timezone, made.owner) == ("0 3 * * *", "Europe/Berlin", "admin")
    assert (made.catch_up, made.overlap, made.enabled) == ("latest", True, True)
    assert (made.queue, made.priority, made.expires, made.max_attempts) == ("mail", 5, 600, 2)
    assert made.next_fire_at is not None
    (entry,) = LogEntry.objects.all()
    assert (entry.object_id, entry.get_change_message()) == ("made", "Added.")


def test_the_rest_is_as_the_task_says(admin_client: Client) -> None:
    data = {**NEW, "overlap": "", "enabled": "", "timezone": "", "catch_up": "none"}
    assert admin_client.post(f"{SCHEDULES}add/", data).status_code == 302
    made = schedules.get("made")
    assert made is not None
    assert (made.queue, made.priority, made.expires, made.max_attempts) == ("default", 0, None, 3)
    assert (made.timezone, made.overlap, made.enabled, made.catch_up) == ("UTC", False, False, "none")


def test_a_payload_in_place_of_a_task(admin_client: Client) -> None:
    data = {**NEW, "task": "", "args": "", "queue": "emails", "payload": '{"to": 1}'}
    assert admin_client.post(f"{SCHEDULES}add/", data).status_code == 302
    made = schedules.get("made")
    assert made is not None
    assert (made.task, made.payload, made.queue) == (None, '{"to":1}', "emails")
    edited = {**data, "payload": '{"to": 2}'}
    assert admin_client.post(url("made"), edited).status_code == 302
    changed = schedules.get("made")
    assert changed is not None
    assert (changed.payload, changed.next_fire_at) == ('{"to":2}', made.next_fire_at)


WRONG = [
    ({"name": ""}, "name", "This field is required."),
    ({"name": " x"}, "name", "begins or ends with white space"),
    ({"name": "taken"}, "name", "There is a schedule of that name."),
    ({"name": "theirs"}, "name", "There is a schedule of that name."),
    ({"expression": "61 * * * *"}, "expression", "In the minute field, '61': 61 is out of range"),
    ({"expression": "0 0 31 2 *"}, "expression", "is never due: there is no such date."),
    ({"expression": "monday"}, "expression", "has 1 field"),
    ({"timezone": "Amerca/New_York"}, "timezone", "There is no time zone 'Amerca/New_York'"),
    ({"catch_up": "some"}, "catch_up", "Select a valid choice."),
    ({"task": "tests.app.tasks.missing"}, "task", "no task 'tests.app.tasks.missing'"),
    ({"task": "os.system"}, "task", "no task 'os.system'"),
    ({"task": ""}, "task", "either a task or a payload"),
    ({"payload": "1"}, "task", "either a task or a payload"),
    ({"task": "", "payload": "1"}, "args", "Only a task has arguments."),
    ({"task": "", "payload": "1", "args": ""}, "queue", "needs the name of its queue"),
    ({"task": "", "payload": "{", "args": "", "queue": "q"}, "payload", "is not JSON"),
    ({"args": "[1, 2"}, "args", "is not JSON"),
    ({"args": "[1, 2, 3]"}, "args", "does not take these"),
    ({"args": "[NaN, 1]"}, "args", "NaN"),
    ({"args": '"ab"'}, "args", "this must be a list"),
    ({"kwargs": "[1]"}, "kwargs", "this must be a dict"),
    ({"kwargs": '{"c": 1}'}, "args", "does not take these"),
    ({"queue": " q"}, "queue", "begins or ends with white space"),
    ({"priority": "high"}, "priority", "Enter a whole number."),
    ({"priority": str(2**40)}, "priority", "must be from"),
    ({"expires": "soon"}, "expires", "must be a duration"),
    ({"expires": "0"}, "expires", "must be from 1"),
    ({"max_attempts": "0"}, "max_attempts", "must be from 1"),
]


@pytest.mark.parametrize(("wrong", "name", "message"), WRONG)
def test_nonsense_is_refused(admin_client: Client, wrong: dict[str, str], name: str, message: str) -> None:
    nightly("taken")
    foreign()
    response = admin_client.post(f"{SCHEDULES}add/", {**NEW, **wrong})
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert list(errors) == [name]
    assert message in errors[name][0]
    assert not errors[name][0].startswith(f"{name}: ")
    assert {each.name for each in schedules.list()} == {"taken", "theirs"}


def edit(client: Client, name: str, **changes: str) -> Any:
    """Send the form of a schedule back as it came, but for these changes."""
    form = client.get(url(name)).context["adminform"].form
    data = {each.name: each.value() for each in form}
    sent = {key: value for key, value in data.items() if value not in (None, False)}
    return client.post(url(name), {**sent, **changes}, follow=True)


def test_an_edit_that_changes_nothing(admin_client: Client) -> None:
    schedules.register("made", "@every 1h", tasks.add.using(priority=3), args=({"a": ["ü"]}, 2), expires=90)
    before = list(ScheduledTask.objects.values()), list(ScheduleOptions.objects.values())
    assert told(edit(admin_client, "made")) != []
    assert (list(ScheduledTask.objects.values()), list(ScheduleOptions.objects.values())) == before


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ({"args": "[3, 4]"}, False),
        ({"priority": "4"}, False),
        ({"catch_up": "all"}, False),
        ({"expression": "30 2 * * 0-6"}, False),
        ({"expression": "30 4 * * *"}, True),
        ({"timezone": "Asia/Tokyo"}, True),
    ],
)
def test_what_an_edit_moves(admin_client: Client, change: dict[str, str], moves: bool) -> None:
    nightly()
    schedules.pause("nightly")
    edit(admin_client, "nightly", **change)
    after = schedules.get("nightly")
    assert after is not None
    assert not after.enabled, "it stays paused"
    stored = factories.columns("nightly", "next_fire_at", model=ScheduledTask)  # type: ignore[arg-type]
    assert (stored != (DUE,)) == moves
    for key, value in change.items():
        if key == "args":
            assert '"args":[3,4]' in after.payload
        else:
            assert str(getattr(after, key)) == value
    (entry,) = LogEntry.objects.all()
    assert entry.get_change_message().startswith("Changed ")


def test_an_edit_that_makes_no_sense(admin_client: Client) -> None:
    nightly()
    before = schedules.get("nightly")
    response = edit(admin_client, "nightly", expression="0 0 31 2 *", priority="7")
    assert list(response.context["adminform"].form.errors) == ["expression"]
    assert schedules.get("nightly") == before


def test_somebody_was_quicker(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    nightly()

    def gone(*args: Any, **kwargs: Any) -> None:
        raise ValueError("There is no schedule 'nightly'.")

    monkeypatch.setattr(schedule_updates, "amend", gone)
    assert told(edit(admin_client, "nightly", priority="1")) == ["There is no schedule 'nightly'."]


@pytest.mark.parametrize("owner", ["code", "foreign"])
def test_what_others_own_cannot_be_changed(admin_client: Client, owner: str) -> None:
    declared("x") if owner == "code" else foreign("x")
    before = schedules.get("x")
    assert admin_client.post(url("x"), {**NEW, "name": "x"}).status_code == 403
    assert admin_client.post(url("x", "delete"), {"post": "yes"}).status_code == 403
    answer = told(operate(admin_client, "delete_selected", "x", confirmed="yes"))
    assert answer == ["1 stays: it belongs to the code, the settings or another program."]
    assert schedules.get("x") == before


def test_deleting(admin_client: Client) -> None:
    for name in ("one", "two", "three", "kept"):
        nightly(name)
    assert admin_client.post(url("one", "delete"), {"post": "yes"}).status_code == 302
    question = operate(admin_client, "delete_selected", "two", "three").content.decode()
    assert "These schedules are to be deleted." in question and len(schedules.list()) == 3
    answer = operate(admin_client, "delete_selected", "two", "three", confirmed="yes")
    assert told(answer) == ["2 schedules were deleted."]
    assert sorted(LogEntry.objects.values_list("object_id", "action_flag")) == [
        (name, DELETION) for name in ("one", "three", "two")
    ]
    assert [each.name for each in schedules.list()] == ["kept"]
    assert list(ScheduleOptions.objects.values_list("pk", flat=True)) == ["kept"]


# -- pause, resume, run now -----------------------------------------------------------------------------


def test_each_operation_asks_first(admin_client: Client) -> None:
    nightly()
    foreign()
    for action, question in (("pause", "fire no more"), ("run", "A job of each")):
        text = operate(admin_client, action, "nightly", "theirs").content.decode()
        assert question in text
        assert text.count("Europe/Berlin") == 1
        assert re.findall(r'name="_selected_action" value="(\w+)"', text) == ["nightly", "theirs"]
    assert all(each.enabled for each in schedules.list())
    assert not Job.objects.exists()


def test_pause_and_resume(admin_client: Client) -> None:
    nightly()
    declared()
    foreign()
    schedules.pause("theirs")
    names = ("declared", "nightly", "theirs")
    answer = told(operate(admin_client, "pause", *names, confirmed="yes"))
    assert answer == ["2 schedules were paused.", "1 was paused already."]
    assert not any(each.enabled for each in schedules.list())
    assert told(operate(admin_client, "resume", *names, confirmed="yes")) == ["3 schedules were resumed."]
    assert all(each.enabled for each in schedules.list())
    found = LogEntry.objects.order_by("pk").values_list("object_id", "change_message")
    assert list(found) == [
        *((name, "Paused.") for name in ("declared", "nightly")),
        *((name, "Resumed.") for name in names),
    ]


def test_what_cannot_be_resumed_says_why(admin_client: Client) -> None:
    foreign("bad", "61 * * * *", enabled=0)
    nightly(enabled=False)
    answer = told(operate(admin_client, "resume", "bad", "nightly", confirmed="yes"))
    assert answer[0] == "1 schedule was resumed."
    assert answer[1].startswith("The schedule 'bad' cannot be due: ")


@pytest.mark.parametrize("action", ["pause", "resume", "run"])
def test_what_is_gone_meanwhile(action: str, admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the list of what was chosen and its own turn."""
    nightly(enabled=action != "resume")
    foreign()
    unregister_before(monkeypatch, "run_now" if action == "run" else action, "theirs")
    first, second = told(operate(admin_client, action, "nightly", "theirs", confirmed="yes"))
    assert first in ("1 schedule was paused.", "1 schedule was resumed.", "1 job was put in.")
    assert second.startswith("There is no schedule 'theirs'")


def test_run_now(admin_client: Client) -> None:
    nightly(overlap=False)
    declared()
    foreign()
    names = ("declared", "nightly", "theirs")
    assert told(operate(admin_client, "run", *names, confirmed="yes")) == ["3 jobs were put in."]
    assert sorted(Job.objects.values_list("queue", flat=True)) == ["default", "default", "emails"]
    answer = told(operate(admin_client, "run", "nightly", confirmed="yes"))
    assert answer == ["1 put in no job: the last one lives, or another has the key of its task."]
    assert schedules.get("nightly").next_fire_at == datetime.fromtimestamp(DUE, tz=UTC)  # type: ignore[union-attr]
    assert LogEntry.objects.filter(change_message="Run now.").count() == 3


def test_the_buttons_of_the_page(admin_client: Client) -> None:
    declared()
    text = page(admin_client, url("declared"))
    assert re.findall(r'name="action" value="(\w+)"', text) == ["pause", "run"]
    (name,) = re.findall(r'<input type="hidden" name="_selected_action" value="(\w+)"', text)
    assert "A job of each" in operate(admin_client, "run", name).content.decode()
    schedules.pause("declared")
    text = page(admin_client, url("declared"))
    assert re.findall(r'name="action" value="(\w+)"', text) == ["resume", "run"]
    schedules.resume("declared")
    declarations._declared.clear()
    assert schedules.sync().withdrawn == ["declared"]
    text = page(admin_client, url("declared"))
    assert field(text, "state_text") == "withdrawn"
    assert re.findall(r'name="action" value="(\w+)"', text) == ["pause", "resume", "run"]


def test_what_is_gone(admin_client: Client) -> None:
    for data in ({}, {"confirmed": "yes"}):
        answer = told(operate(admin_client, "run", "nightly", **data))
        assert answer == ["None of them is there any more."]


def test_so_many_at_once(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_actions, "AT_ONCE", 2)
    for number in range(3):
        foreign(str(number))
    text = operate(admin_client, "pause", "0", "1", "2").content.decode()
    assert "More than 2 were selected" in text
    assert re.findall(r'name="_selected_action" value="(\w+)"', text) == ["0", "1"]
    answer = told(operate(admin_client, "pause", "0", "1", "2", confirmed="yes"))
    assert answer == ["2 schedules were paused."]


# -- who may --------------------------------------------------------------------------------------------


def test_looking_only() -> None:
    nightly()
    looker = reader("view_scheduledtask")
    assert column(page(looker, SCHEDULES), "name_text") == ["nightly"]
    text = page(looker, url("nightly"))
    assert field(text, "owner") == "admin"
    assert 'name="expression"' not in text
    assert "operation-form" not in text
    for action in ("pause", "resume", "run", "delete_selected"):
        operate(looker, action, "nightly", confirmed="yes")
    assert looker.get(f"{SCHEDULES}add/").status_code == 403
    assert looker.post(f"{SCHEDULES}add/", NEW).status_code == 403
    assert looker.post(url("nightly"), NEW).status_code == 403
    assert looker.post(url("nightly", "delete"), {"post": "yes"}).status_code == 403
    (found,) = schedules.list()
    assert (found.name, found.enabled) == ("nightly", True)
    assert not Job.objects.exists()


@pytest.mark.parametrize(("permission", "allowed"), [("pause", {"pause"}), ("run", {"run"})])
def test_the_operators(permission: str, allowed: set[str]) -> None:
    nightly()
    operator = reader("view_scheduledtask", f"{permission}_scheduledtask")
    text = page(operator, url("nightly"))
    assert set(re.findall(r'name="action" value="(\w+)"', text)) == allowed
    assert 'name="expression"' not in text
    for action in ("pause", "run"):
        operate(operator, action, "nightly", confirmed="yes")
    (found,) = schedules.list()
    assert (not found.enabled, Job.objects.exists()) == ("pause" in allowed, "run" in allowed)


def test_strangers(client: Client) -> None:
    nightly()
    assert client.get(SCHEDULES).status_code == 302
    stranger = reader("view_deadjob", "pause_queuecontrol")
    for address in (SCHEDULES, f"{SCHEDULES}add/", url("nightly"), url("nightly", "history")):
        assert stranger.get(address).status_code == 403


@pytest.mark.parametrize("key", ["nobody", "%00", "x_5F", "9" * 300])
def test_odd_addresses(admin_client: Client, key: str) -> None:
    assert admin_client.get(url(key)).status_code in (302, 404)
    assert admin_client.get(SCHEDULES, {"q": "\x00"}).status_code in (200, 302)
    operate(admin_client, "pause", key, confirmed="yes")
