"""Somebody else does something to a schedule before each statement of a request of the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client

from alkstore_django import declarations, schedules
from alkstore_django.models import Job
from tests.app import tasks
from tests.contract.rival import Turn, losses, told, turns
from tests.factories import ask
from tests.pages import SCHEDULES, as_shown, column, field

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = f"{SCHEDULES}s/change/"


@pytest.fixture(autouse=True)
def nothing_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "_declared", {})


def made_again() -> None:
    """The schedule of all tests, as if nothing had happened."""
    declarations._declared.clear()
    LogEntry.objects.all().delete()
    schedules.unregister("s")
    schedules.register("s", "30 2 * * *", tasks.add, args=(1, 2), timezone="UTC")


def changed() -> None:
    schedules.update("s", expression="1 1 1 1 *")


def deleted() -> Any:
    """What was deleted."""
    found = schedules.get("s")
    schedules.unregister("s")
    return found


def paused() -> None:
    schedules.pause("s")


def declared() -> None:
    """It is deleted, and the code has one of that name."""
    schedules.unregister("s")
    schedules.schedule("@hourly", name="s")(tasks.nothing)
    schedules.sync()


def at() -> schedules.Schedule:
    found = schedules.get("s")
    assert found is not None
    return found


# -- looking --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rival", [changed, deleted, declared])
def test_the_list_shows_each_as_it_was_at_one_moment(admin_client: Client, rival: Callable[[], Any]) -> None:
    for turn in turns(rival):
        made_again()
        with turn:
            text = admin_client.get(SCHEDULES).content.decode()
        shown = (column(text, "owner"), column(text, "when"))
        assert shown in [
            (["admin"], ["30 2 * * * UTCat 02:30 every day"]),
            (["admin"], ["1 1 1 1 * UTCat 01:01 on day 1 of the month in January"]),
            (["code"], ["@hourly UTCminute 0 of every hour"]),
            ([], []),
        ]


@pytest.mark.parametrize("rival", [changed, deleted])
def test_so_does_its_page(admin_client: Client, rival: Callable[[], Any]) -> None:
    for turn in turns(rival):
        made_again()
        with turn:
            response = admin_client.get(PAGE)
        if response.status_code == 302:
            assert turn.did and schedules.get("s") is None
            continue
        text = response.content.decode()
        assert field(text, "owner") == "admin"
        assert field(text, "when_text") in ("30 2 * * * (UTC)", "1 1 1 1 * (UTC)")
        assert 'name="expression"' in text, "it can be changed"


# -- changing -------------------------------------------------------------------------------------------


def raised() -> None:
    schedules.update("s", priority=3)


Typed = dict[str, str]


@pytest.fixture
def typed(admin_client: Client) -> Typed:
    """What a browser sends in which somebody has set the priority to 7."""
    made_again()
    return as_shown(admin_client, PAGE) | {"priority": "7"}


CHANGED = ["The schedule “s” was changed successfully."]


def test_what_others_change_beside_it_is_kept(admin_client: Client, typed: Typed) -> None:
    """The form was shown with another expression, and nobody has touched that field."""
    for turn in turns(changed):
        made_again()
        with turn:
            answer = admin_client.post(PAGE, typed)
        assert answer.status_code == 302
        assert told(admin_client, answer) == CHANGED
        assert (at().priority, at().expression) == (7, "1 1 1 1 *" if turn.did else "30 2 * * *")
        (entry,) = LogEntry.objects.all()
        assert entry.get_change_message() == "Changed Priority."


@pytest.mark.parametrize("hidden", [True, False])
def test_what_others_have_changed_is_not_changed_back(
    admin_client: Client, typed: Typed, hidden: bool
) -> None:
    """Without the hidden fields, as a script may send it, the last one who looked has seen it all."""
    typed = {name: value for name, value in typed.items() if hidden or "initial" not in name}
    for turn in turns(raised):
        made_again()
        with turn:
            answer = admin_client.post(PAGE, typed)
        if answer.status_code == 302:
            assert told(admin_client, answer) == CHANGED
            assert at().priority == 7
            assert not (turn.did and hidden)
            continue
        assert turn.did and hidden and at().priority == 3
        assert not LogEntry.objects.exists()
        shown = answer.context["adminform"].form
        (message,) = shown.errors.pop("priority")
        assert not shown.errors and "Somebody has changed this" in message and "to: 3." in message
        assert 'name="priority" value="7"' in answer.content.decode(), "what was typed is still there"


def test_what_is_gone_does_not_come_back(admin_client: Client, typed: Typed) -> None:
    for turn in turns(deleted):
        made_again()
        with turn:
            answer = admin_client.post(PAGE, typed)
        assert answer.status_code == 302
        messages = told(admin_client, answer)
        assert (schedules.get("s") is None) == bool(turn.did)
        if turn.did and turn.did.priority != 7:
            assert messages == ["schedule with ID “s” doesn’t exist. Perhaps it was deleted?"]
            assert not LogEntry.objects.exists()
        else:
            assert messages == CHANGED


def test_what_another_owns_by_then_is_not_changed(admin_client: Client, typed: Typed) -> None:
    for turn in turns(declared):
        made_again()
        with turn:
            answer = admin_client.post(PAGE, typed)
        assert at().owner == ("code" if turn.did else "admin")
        if answer.status_code == 302:
            (message,) = told(admin_client, answer)
            assert [message] == CHANGED or "made by @schedule in the code" in message
            assert LogEntry.objects.exists() == ([message] == CHANGED)
        else:
            assert answer.status_code == 403
            assert not LogEntry.objects.exists()


@pytest.fixture
def repeatable_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A project whose transactions see the same rows all along; on MariaDB also what newer ones do."""
    connection.ensure_connection()
    if connection.vendor == "mysql":
        monkeypatch.setattr(connection, "isolation_level", "repeatable read")
        ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    else:
        ask("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    yield
    connection.close()


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("rival", [changed, raised, deleted])
def test_at_another_isolation(
    admin_client: Client, typed: Typed, repeatable_read: None, rival: Callable[[], Any]
) -> None:
    for turn in turns(rival):
        made_again()
        with turn:
            answer = admin_client.post(PAGE, typed)
        found, messages = schedules.get("s"), told(admin_client, answer)
        if answer.status_code == 200:
            assert turn.did and rival is raised and at().priority == 3
        elif found is None:
            assert turn.did and rival is deleted
        else:
            assert found.priority == 7
            assert (found.expression == "1 1 1 1 *") == (bool(turn.did) and rival is changed)
            assert messages == CHANGED


# -- adding and deleting --------------------------------------------------------------------------------

NEW = {"name": "s", "expression": "0 3 * * *", "task": "tests.app.tasks.add", "args": "[1, 2]"}
NEW |= {"timezone": "UTC", "catch_up": "latest", "overlap": "on", "enabled": "on"}


def added() -> bool | str:
    """By somebody who has looked whether there is one of that name."""
    if schedules.get("s") is not None:
        return "too late"
    schedules.register("s", "1 1 1 1 *", tasks.nothing)
    return True


def test_of_two_who_add_one_of_the_same_name_one_does(admin_client: Client) -> None:
    for turn in turns(added):
        made_again()
        schedules.unregister("s")
        with turn:
            answer = admin_client.post(f"{SCHEDULES}add/", NEW)
        if answer.status_code == 302:
            assert told(admin_client, answer) == ["The schedule “s” was added successfully."]
            assert turn.did is not True and at().expression == "0 3 * * *"
            continue
        assert turn.did is True and at().expression == "1 1 1 1 *"
        form = answer.context["adminform"].form
        assert form.errors == {"name": ["There is a schedule of that name."]}
        assert form["args"].value() == "[1, 2]", "what was typed is still there"
        assert not LogEntry.objects.exists()


@pytest.mark.parametrize("rival", [deleted, declared, paused])
def test_only_what_was_deleted_is_said_to_be(admin_client: Client, rival: Callable[[], Any]) -> None:
    gone = "There is no schedule 's' any more."
    known = {
        "The schedule “s” was deleted successfully.": True,
        "schedule with ID “s” doesn’t exist. Perhaps it was deleted?": False,
        gone: False,
        "The schedule 's' is not the admin's any more, and stays.": False,
    }
    for turn in turns(rival):
        made_again()
        with turn:
            answer = admin_client.post(f"{SCHEDULES}s/delete/", {"post": "yes"})
        if answer.status_code == 302:
            (message,) = told(admin_client, answer)
        else:
            assert answer.status_code == 403 and rival is declared
            message = gone
        check_deletion(rival, turn, known[message])


@pytest.mark.parametrize("rival", [deleted, declared, paused])
def test_so_it_is_of_many(admin_client: Client, rival: Callable[[], Any]) -> None:
    known = {
        "1 schedule was deleted.": True,
        "None of them is there any more.": False,
        "There is no schedule 's' any more.": False,
        "1 stays: it belongs to the code, the settings or another program.": False,
    }
    for turn in turns(rival):
        made_again()
        with turn:
            data = {"action": "delete_selected", "_selected_action": "s", "confirmed": "yes"}
            answer = admin_client.post(SCHEDULES, data)
        assert answer.status_code == 302
        (message,) = told(admin_client, answer)
        check_deletion(rival, turn, known[message])


def check_deletion(rival: Callable[[], Any], turn: Turn, was_said: bool) -> None:
    assert LogEntry.objects.exists() == was_said
    found = schedules.get("s")
    if rival is declared and turn.did:
        assert found is not None and found.owner == "code", "what others declare stays"
    else:
        assert found is None
    assert was_said or (turn.did and rival is not paused)


# -- what fails in the middle ---------------------------------------------------------------------------

ACTIONS = ["pause", "run", "delete_selected"]


@pytest.mark.parametrize("what", ["add", "edit", "delete", *ACTIONS])
def test_what_fails_is_neither_done_nor_logged(admin_client: Client, typed: Typed, what: str) -> None:
    admin_client.raise_request_exception = False
    requests = {
        "add": (f"{SCHEDULES}add/", {**NEW, "name": "new"}),
        "edit": (PAGE, typed),
        "delete": (f"{SCHEDULES}s/delete/", {"post": "yes"}),
        **{
            action: (SCHEDULES, {"action": action, "_selected_action": "s", "confirmed": "yes"})
            for action in ACTIONS
        },
    }

    def state() -> tuple[list[schedules.Schedule], int]:
        return schedules.list(), Job.objects.count()

    for loss in losses():
        schedules.unregister("new")
        Job.objects.all().delete()
        made_again()
        before = state()
        with loss:
            answer = admin_client.post(*requests[what])
        assert answer.status_code == (500 if loss.came else 302)
        assert (state() == before) == loss.came
        assert LogEntry.objects.exists() != loss.came
