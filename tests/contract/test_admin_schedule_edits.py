"""The form of a schedule comes back after somebody else has changed it: what is kept, and what is asked."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from alkstore_django import schedules
from alkstore_django.models import ScheduledTask
from tests.app import tasks
from tests.pages import SCHEDULES, as_shown

pytestmark = pytest.mark.django_db

PAGE = f"{SCHEDULES}s/change/"


@pytest.fixture(autouse=True)
def made() -> None:
    schedules.register("s", "30 2 * * *", tasks.add, args=(1, 2), timezone="UTC")


def at() -> schedules.Schedule:
    found = schedules.get("s")
    assert found is not None
    return found


def call(*args: object, **kwargs: object) -> str:
    return tasks.add.get_backend().envelope(tasks.add, args, kwargs).seal()  # type: ignore[no-any-return]


FIELDS: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"priority": 3}, {"priority": "7"}, "3"),
    ({"expires": 60}, {"expires": "2m"}, "60s"),
    ({"overlap": False}, {"overlap": ""}, ""),
    ({"catch_up": "all"}, {"catch_up": "none"}, "all that were missed, up to 64"),
    ({"queue": "mail"}, {"queue": "bulk"}, "mail"),
    ({"expression": "1 1 * * *"}, {"expression": "2 2 * * *"}, "1 1 * * *"),
    ({"expression": "1 1 * * *"}, {"timezone": "Asia/Tokyo"}, "1 1 * * *"),
    ({"timezone": "Asia/Tokyo"}, {"timezone": "Asia/Seoul"}, "Asia/Tokyo"),
    ({"args": [5, 6]}, {"args": "[7, 8]"}, "[5, 6]"),
    ({"args": [5], "kwargs": {"b": 1}}, {"args": "[7, 8]"}, "[5]"),
    ({"payload": 5, "queue": "mail"}, {"args": "[7, 8]"}, "5"),
]


@pytest.mark.parametrize(("theirs", "ours", "shown"), FIELDS)
def test_both_have_changed_it(
    admin_client: Client, theirs: dict[str, Any], ours: dict[str, str], shown: str
) -> None:
    data = {**as_shown(admin_client, PAGE), **ours}
    data = {name: value for name, value in data.items() if value or name != "overlap"}
    schedules.update("s", **theirs)
    changed = at()
    answer = admin_client.post(PAGE, data)
    if not shown:  # to the same
        assert answer.status_code == 302 and at() == changed
        return
    assert answer.status_code == 200 and at() == changed
    errors = answer.context["adminform"].form.errors
    (name, *_) = theirs
    assert f"to: {shown}. Save again" in errors[name][0]
    assert not LogEntry.objects.exists()


def test_saving_again_replaces_it(admin_client: Client) -> None:
    data = {**as_shown(admin_client, PAGE), "priority": "7", "args": "[7, 8]"}
    schedules.update("s", priority=3, catch_up="all")
    answer = admin_client.post(PAGE, data)
    form = answer.context["adminform"].form
    assert list(form.errors) == ["priority"]
    assert form["catch_up"].value() == "all", "what stands there is what is stored"
    again = {each.name: each.value() for each in form if each.value() not in (None, False)}
    again |= {f"initial-{each.name}": form.data[f"initial-{each.name}"] for each in form}
    assert admin_client.post(PAGE, again).status_code == 302
    assert (at().priority, at().catch_up, at().payload) == (7, "all", call(7, 8))
    assert LogEntry.objects.get().get_change_message() == "Changed Arguments and Priority."


def test_what_was_left_as_it_was_is_kept(admin_client: Client) -> None:
    data = {**as_shown(admin_client, PAGE), "priority": "7"}
    schedules.update("s", args=[5, 6], timezone="Asia/Tokyo", overlap=False, expires=60, max_attempts=9)
    assert admin_client.post(PAGE, data).status_code == 302
    found = at()
    assert (found.priority, found.payload, found.timezone) == (7, call(5, 6), "Asia/Tokyo")
    assert (found.overlap, found.expires, found.max_attempts) == (False, 60, 9)
    assert LogEntry.objects.get().get_change_message() == "Changed Priority."


def test_line_breaks_are_no_change(admin_client: Client) -> None:
    """A browser sends other ones than it was given."""
    schedules.update("s", payload=1, queue="mail")
    raw = '{"a":\n1}\n'
    ScheduledTask.objects.update(payload=raw)
    data = {name: value.replace("\n", "\r\n") for name, value in as_shown(admin_client, PAGE).items()}
    assert data["payload"] == raw.replace("\n", "\r\n")
    assert admin_client.post(PAGE, {**data, "priority": "7"}).status_code == 302
    assert (at().priority, at().payload) == (7, raw)


@pytest.mark.parametrize("nonsense", ["x", "\x00", "9" * 300])
def test_hidden_fields_may_hold_anything(admin_client: Client, nonsense: str) -> None:
    data = as_shown(admin_client, PAGE)
    data |= {name: nonsense for name in data if name.startswith("initial-")}
    answer = admin_client.post(PAGE, {**data, "priority": "7"})
    assert answer.status_code == 200
    assert "Save again" in answer.content.decode()
    assert at().priority == 0
