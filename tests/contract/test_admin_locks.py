"""Releasing locks by force from the admin: what is asked, what is done, what is told, and who may."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from alkstore_django import locks
from alkstore_django.admin import locks as admin_locks
from alkstore_django.locks import lock
from alkstore_django.models import Lock
from tests import factories
from tests.pages import EVIL, LOCKS, page, reader

pytestmark = pytest.mark.django_db


def ask(client: Client, *names: str, **data: Any) -> Any:
    return client.post(LOCKS, {"action": "release", "_selected_action": names, **data}, follow=True)


def confirm(client: Client, response: Any) -> Any:
    """Press the button of the page that asks."""
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(
        r'<input type="hidden" name="(\w+)" value="([^"]*)"', response.content.decode()
    ):
        fields.setdefault(name, []).append(unescape(value))
    return client.post(LOCKS, fields, follow=True)


def told(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def held(name: str, owner: str = "web-3", seconds: int = 60) -> None:
    Lock.objects.create(name=name, owner=owner, expires_at=factories.at(seconds))


def test_it_asks_and_then_releases(admin_client: Client) -> None:
    held("a")
    held("b", owner="web-4")
    held("c")
    question = ask(admin_client, "a", "b")
    text = question.content.decode()
    assert "taken away from their holders" in text and "web-4" in text and "Yes, release" in text
    assert len(locks.held()) == 3, "only asked"
    answer = confirm(admin_client, question)
    assert told(answer) == ["2 locks were released."]
    assert [each.name for each in locks.held()] == ["c"]
    assert {entry.change_message for entry in LogEntry.objects.all()} == {"Released by force."}
    assert sorted(entry.object_id for entry in LogEntry.objects.all()) == ["a", "b"]


def test_its_holder_finds_out(admin_client: Client) -> None:
    mine = lock("l").acquire()
    assert told(confirm(admin_client, ask(admin_client, "l"))) == ["1 lock was released."]
    assert not mine.renew() and mine.lost


def test_who_has_it_since_the_question_keeps_it(admin_client: Client) -> None:
    held("a")
    held("b")
    question = ask(admin_client, "a", "b")
    Lock.objects.filter(pk="a").update(owner="another")
    Lock.objects.filter(pk="b").delete()
    assert told(confirm(admin_client, question)) == ["2 locks were not held any more, or by somebody else."]
    assert [each.owner for each in locks.held()] == ["another"]


def test_what_has_ended_is_not_held(admin_client: Client) -> None:
    held("a", seconds=0)
    answer = confirm(admin_client, ask(admin_client, "a"))
    assert told(answer) == ["1 lock was not held any more, or by somebody else."]


def test_no_more_than_the_page_has_named(admin_client: Client) -> None:
    """A request that was written by hand, without owners."""
    held("a")
    ask(admin_client, "a", confirmed="yes")
    assert locks.holder("a") is not None and not LogEntry.objects.exists()


def test_many(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_locks, "AT_ONCE", 2)
    for name in "abc":
        held(name)
    question = ask(admin_client, "a", "b", "c")
    assert "More than 2 were selected" in question.content.decode()
    assert told(confirm(admin_client, question)) == ["2 locks were released."]
    assert [each.name for each in locks.held()] == ["c"]


def test_names_and_owners_are_escaped(admin_client: Client) -> None:
    held(EVIL, owner=EVIL)
    question = ask(admin_client, EVIL)
    assert EVIL not in question.content.decode()
    assert told(confirm(admin_client, question)) == ["1 lock was released."]


def test_who_may() -> None:
    held("a")
    looker = reader("view_lock")
    assert "by force" not in page(looker, LOCKS)
    ask(looker, "a", confirmed="yes", owner="web-3")
    assert locks.holder("a") is not None


def test_who_may_release() -> None:
    held("a")
    operator = reader("view_lock", "release_lock")
    assert "Release selected locks by force" in page(operator, LOCKS)
    assert told(confirm(operator, ask(operator, "a"))) == ["1 lock was released."]
