"""Somebody else does something to a schedule before each statement of a request of the admin."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from alkstore_django import declarations, schedules
from tests.app import tasks
from tests.contract.rival import turns
from tests.pages import SCHEDULES, column, field

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
    return schedules.get("s") if schedules.unregister("s") else None


def declared() -> None:
    """It is deleted, and the code has one of that name."""
    schedules.unregister("s")
    schedules.schedule("@hourly", name="s")(tasks.nothing)
    schedules.sync()


def told(response: Any) -> list[str]:
    return [re.sub(r"<[^>]*>", "", str(message)) for message in response.context["messages"]]


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
