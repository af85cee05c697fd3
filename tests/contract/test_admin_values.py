"""The admin's pages show whatever is stored: broken, hostile, huge or foreign."""

from __future__ import annotations

import inspect
import json
import re
import sys
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils.functional import Promise

from alkstore_django.admin import DeadJobAdmin, LockAdmin, display
from alkstore_django.admin.display import HEAD, PAGE
from alkstore_django.models import Attempt, Lock
from tests import factories
from tests.pages import DEAD, EVIL, LOCKS, column, field, page, task

pytestmark = pytest.mark.django_db


def test_a_date_that_is_none(admin_client: Client) -> None:
    factories.dead(1, died_at=1700000000000, created_at=-5)  # milliseconds
    for text in (page(admin_client, DEAD), page(admin_client, f"{DEAD}1/change/")):
        assert "1700000000000" in text
        assert "-5" in text


def test_ids_are_never_grouped(admin_client: Client, settings: Any) -> None:
    settings.USE_THOUSAND_SEPARATOR = True
    Attempt.objects.create(job_id=1234567, kind=Attempt.RENUMBERED, other_id=7654321, ended_at=1)
    factories.dead(1234567)
    for text in (page(admin_client, DEAD), page(admin_client, f"{DEAD}1234567/change/")):
        assert "1,234,567" not in text
        assert "7,654,321" not in text


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ("", ""),
        ("{", "{"),
        ('{"__honker_task__": {"task": "cut', '{"__honker_task__": {"task": "cut'),
        ('"\\ud800 \\u0000"', '"\\ud800 \\u0000"'),
        ("[" * 100_000, "[" * 100_000),
        (f"{'[' * 400}{']' * 400}", "[\n  [\n"),
        ("1" * 5_000, "1" * 5_000),
        (json.dumps("x" * 2 * PAGE), '"xxx'),
    ],
)
def test_any_payload_shows(admin_client: Client, payload: str, shown: str) -> None:
    factories.dead(1, payload=payload, last_error=payload)
    assert column(page(admin_client, DEAD), "number") == ["1"]
    text = page(admin_client, f"{DEAD}1/change/")
    assert field(text, "payload_text").startswith(shown)
    assert len(text) < 6 * PAGE


def test_a_payload_that_is_read_but_nested_too_deeply_to_be_written() -> None:
    payload = f"{'[' * 250}{']' * 250}"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 150)
    try:
        shown = display.pretty(payload)
    finally:
        sys.setrecursionlimit(limit)
    assert shown == payload


def test_a_payload_that_grows_by_being_indented_is_cut(admin_client: Client) -> None:
    depth = 300
    factories.dead(1, payload=(payload := f"{'[' * depth}{','.join('1' * 30_000)}{']' * depth}"))
    assert len(display.pretty(payload)) < 2 * PAGE, "18 million characters were made"
    text = page(admin_client, f"{DEAD}1/change/")
    assert "[cut here: the rest is too long for a page]" in text
    assert len(text) < 3 * PAGE


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.b", "a.b"),
        ("x" * 2 * HEAD, f"{'x' * 50}"),
        ("\\ud800.é", "\\ud800.é"),
        ("a\\nb\\u0000", "a\nb\\x00"),
    ],
)
def test_the_name_of_a_task_is_read_from_the_beginning(admin_client: Client, name: str, shown: str) -> None:
    """Lists read the first characters only."""
    factories.dead(1, payload=f'{{"__honker_task__": {{"task": "{name}", "args": ["{"y" * 2 * HEAD}"]}}}}')
    (found,) = column(page(admin_client, DEAD), "task")
    assert found.startswith(shown)
    assert found.endswith("…") == (len(name) > HEAD)


def test_bytes_that_are_no_text(admin_client: Client, sqlite: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO _honker_dead (id, queue, payload, last_error) VALUES "
            "(1, CAST(X'71FF' AS TEXT), CAST(X'7B22FF' AS TEXT), CAST(X'41FFFE' AS TEXT)), "
            "(2, X'71FF', X'7B22FF', X'41FFFE')"
        )
        cursor.execute("INSERT INTO _honker_locks VALUES (CAST(X'6CFF' AS TEXT), CAST(X'6FFF' AS TEXT), 5)")
    text = page(admin_client, DEAD)
    assert column(text, "queue") == ["q\\xff"] * 2
    assert column(text, "short_error") == ["A\\xff\\xfe"] * 2
    for job_id in (1, 2):
        text = page(admin_client, f"{DEAD}{job_id}/change/")
        assert field(text, "payload_text") == '{"\\xff'
        assert field(text, "error") == "A\\xff\\xfe"
    chosen = {"action": "requeue", "_selected_action": ["1", "2"]}
    assert admin_client.post(DEAD, chosen).content.decode().count("A\\xff\\xfe") == 2
    assert column(page(admin_client, LOCKS), "owner") == ["o\\xff"]


# -- escaped, and nothing inline ----------------------------------------------------------------------


class Inline(HTMLParser):
    """Collects what a strict Content-Security-Policy refuses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        handlers = [name for name in given if name.startswith("on") or name == "style"]
        if handlers or tag == "style" or (tag == "script" and "src" not in given):
            self.found.append(self.get_starttag_text() or "")


def test_every_page_escapes_and_has_nothing_inline(admin_client: Client) -> None:
    factories.dead(1, EVIL, task(EVIL, EVIL), last_error=f"{EVIL}\n{EVIL}")
    factories.dead(2, EVIL, EVIL, last_error=EVIL)
    told = {"worker_id": EVIL, "error_class": EVIL, "error": EVIL, "traceback": EVIL, "kind": EVIL[:16]}
    Attempt.objects.create(job_id=1, ended_at=1, **told)
    Lock.objects.create(name=EVIL, owner=EVIL, expires_at=5)
    lock = re.findall(r'<th class="field-name"><a href="([^"]*)"', page(admin_client, LOCKS))[0]
    pages = [
        page(admin_client, DEAD),
        page(admin_client, DEAD, queue=EVIL),
        page(admin_client, DEAD, q=EVIL),
        page(admin_client, f"{DEAD}1/change/"),
        page(admin_client, f"{DEAD}2/change/"),
        admin_client.post(DEAD, {"action": "requeue", "_selected_action": ["1", "2"]}).content.decode(),
        page(admin_client, LOCKS),
        page(admin_client, LOCKS, q=EVIL),
        page(admin_client, lock),
        admin_client.post(f"{DEAD}requeue/", {"ids": "1"}, follow=True).content.decode(),
        page(admin_client, "/admin/"),  # the recent actions
        page(admin_client, f"{DEAD}2/history/"),
    ]
    for text in pages:
        assert "<img src=x" not in text
        assert "<script>alert" not in text
        assert Inline(text).found == []
    assert all(EVIL in unescape(pages[number]) for number in (0, 3, 4, 5, 6, 8, 10))


def test_what_is_shown_can_be_translated() -> None:
    for admin in (DeadJobAdmin, LockAdmin):
        methods = [getattr(admin, name) for name in admin.list_display if hasattr(admin, name)]
        assert methods
        assert all(isinstance(method.short_description, Promise) for method in methods)
    assert isinstance(DeadJobAdmin.requeue.short_description, Promise)  # type: ignore[attr-defined]
