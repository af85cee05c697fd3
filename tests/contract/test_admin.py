"""The admin's pages of dead letters and locks: what they show, and to whom."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.test import Client

from alkstore_django.models import DeadJob, Lock
from alkstore_django.queues import Queue
from tests import factories
from tests.pages import DEAD, LOCKS, column, field, page, reader, task

pytestmark = pytest.mark.django_db


def test_the_list(admin_client: Client, queue: Queue) -> None:
    lines = "\n\nno such table\nTraceback (most recent call last):\n"
    factories.dead(
        7, queue.name, task("gone.module.func"), last_error=lines, max_attempts=3, died_at=1700000000
    )
    factories.dead(8, queue.name, "[]", last_error=None, created_at=1600000000)
    text = page(admin_client, DEAD)
    assert column(text, "number") == ["8", "7"], "the newest first"
    assert column(text, "queue") == [queue.name] * 2
    assert column(text, "task") == ["-", "gone.module.func"]
    assert column(text, "tries") == ["3 of 0", "3 of 3"]
    assert column(text, "short_error") == ["-", "no such table"]
    assert column(text, "died")[1] == "11/14/2023 10:13 p.m."
    assert column(text, "created")[0] == "09/13/2020 12:26 p.m."


def test_a_dead_letter(admin_client: Client, queue: Queue) -> None:
    job_id = queue.enqueue({"__honker_task__": {"task": "gone.func", "args": ["é", {"a": 1}]}})
    for life in (1, 2):
        job = queue.claim_one(f"worker {life}")
        assert job
        try:
            raise ValueError(f"life {life}")
        except ValueError as error:
            assert queue.fail(job, error)
        if life == 1:
            assert queue.requeue([job_id]) == 1
    text = page(admin_client, f"{DEAD}{job_id}/change/")
    assert field(text, "whole_task") == "gone.func"
    error = field(text, "error")
    assert error.startswith("life 2\nTraceback (most recent call last):\n")
    assert error.endswith("ValueError: life 2\n")
    assert field(text, "payload_text") == json.dumps(
        {"__honker_task__": {"task": "gone.func", "args": ["é", {"a": 1}]}}, indent=2, ensure_ascii=False
    )
    history = unescape(text[text.index("Attempts</h2>") :])
    for part in ("worker 1", "worker 2", "builtins.ValueError", "life 1", "requeued", "ValueError: life 2\n"):
        assert part in history


def test_the_history_of_all_ids(admin_client: Client, queue: Queue) -> None:
    """A dead letter whose id was taken: its page shows what happened under the old id, too."""
    factories.dead(old := queue.enqueue(1), "another")
    job = queue.claim_one("w")
    assert job
    assert queue.fail(job, "of the renumbered one")
    (new,) = DeadJob.objects.exclude(pk=old).values_list("pk", flat=True)
    for job_id in (old, new):
        text = page(admin_client, f"{DEAD}{job_id}/change/")
        assert f"renumbered ({new})" in text
        assert f"renumbered ({old})" in text
        assert "of the renumbered one" in text
        assert f"<td>{old}</td>" in text


def test_locks(admin_client: Client) -> None:
    Lock.objects.create(name="held", owner="me", expires_at=factories.at(60))
    Lock.objects.create(name="over/ 1", owner="you", expires_at=factories.at(0))
    text = page(admin_client, LOCKS)
    assert column(text, "name") == ["held", "over/ 1"]
    assert column(text, "owner") == ["me", "you"]
    assert column(text, "state") == ["held", "expired"]
    (url,) = re.findall(r'href="([^"]*over[^"]*)"', text)
    text = page(admin_client, url)
    assert field(text, "state") == "expired"
    assert column(page(admin_client, LOCKS, q="you"), "name") == ["over/ 1"]


# -- to whom ------------------------------------------------------------------------------------------


def test_looking_needs_the_view_permission_only() -> None:
    factories.dead(1)
    Lock.objects.create(name="l", owner="o", expires_at=5)
    client = reader("view_deadjob", "view_lock")
    for url in (DEAD, f"{DEAD}1/change/", LOCKS, f"{LOCKS}l/change/"):
        assert "equeue" not in page(client, url).replace("/requeue", ""), "it may not be done"


def test_nothing_can_be_edited(admin_client: Client) -> None:
    factories.dead(1)
    Lock.objects.create(name="l", owner="o", expires_at=5)
    for base, key in ((DEAD, "1"), (LOCKS, "l")):
        for url in (f"{base}add/", f"{base}{key}/delete/"):
            assert admin_client.get(url).status_code == 403
            assert admin_client.post(url, {"post": "yes"}).status_code == 403
        assert admin_client.post(f"{base}{key}/change/", {"queue": "x"}).status_code == 403
        assert '<input type="text" name="queue"' not in page(admin_client, f"{base}{key}/change/")
        admin_client.post(base, {"action": "delete_selected", "_selected_action": key, "post": "yes"})
    assert DeadJob.objects.count() == Lock.objects.count() == 1


def test_others_see_nothing(client: Client) -> None:
    factories.dead(1)
    for url in (DEAD, f"{DEAD}1/change/", LOCKS):
        assert client.get(url).status_code == 302, "to the login"
    client = reader("requeue_deadjob")
    for url in (DEAD, f"{DEAD}1/change/", LOCKS):
        assert client.get(url).status_code == 403


# -- odd addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["0", "-1", str(2**63 - 1), str(2**63), "9" * 5000, "x", "1_5F", "%00", "１", "1.0"]
)
def test_an_id_that_is_not_there(admin_client: Client, key: str) -> None:
    factories.dead(5)
    for page_name in ("change", "history"):
        response = admin_client.get(f"{DEAD}{key}/{page_name}/")
        assert response.status_code in (302, 404), "as Django answers"
    assert admin_client.get(f"{LOCKS}{key}/change/").status_code == 302


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"p": "x"}, (200, 302)),
        ({"p": "99"}, (200, 302)),
        ({"o": "2.5.99.x"}, (200,)),
        ({"q": str(2**63)}, (200,)),
        ({"q": "9" * 5000}, (200,)),
        ({"q": "\x00"}, (200,)),
        ({"queue": "\x00"}, (200,)),
        ({"queue": ""}, (200,)),
        ({"nonsense": "1"}, (302,)),
        ({"_facets": ""}, (200,)),
    ],
)
def test_odd_queries_of_the_list(admin_client: Client, data: dict[str, str], status: tuple[int, ...]) -> None:
    factories.dead(1)
    assert admin_client.get(DEAD, data).status_code in status
    assert admin_client.get(LOCKS, data).status_code in (200, 302)
