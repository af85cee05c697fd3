"""Requeueing from the admin: what is asked, what is done, what is told, and who may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import path

from alkstore_django.admin import DeadJobAdmin, requeueing
from alkstore_django.models import DeadJob, Job
from alkstore_django.queues import Queue
from tests import factories
from tests.pages import DEAD, reader

pytestmark = pytest.mark.django_db

REQUEUE = f"{DEAD}requeue/"


def ask(client: Client, *ids: int, **data: Any) -> Any:
    """Choose the action of the list; the answer is the page that asks for confirmation."""
    return client.post(DEAD, {"action": "requeue", "_selected_action": ids, **data})


def confirm(client: Client, response: Any) -> Any:
    """Press the button of that page."""
    text = response.content.decode()
    url = unescape(re.findall(r'<form method="post" action="([^"]*)"', text)[0])
    ids = re.findall(r'name="ids" value="([^"]*)"', text)[0]
    return client.post(url, {"ids": ids}, follow=True)


def told(response: Any) -> list[str]:
    """The messages on a page."""
    return [str(message) for message in response.context["messages"]]


def test_the_action_asks_and_then_requeues(admin_client: Client, queue: Queue) -> None:
    for number in range(1, 4):
        factories.dead(number, queue.name, priority=number, last_error=f"error {number}")
    question = ask(admin_client, 1, 3)
    text = question.content.decode()
    assert "2 dead letters are to be requeued" in text
    assert "error 1" in text
    assert "error 2" not in text
    assert DeadJob.objects.count() == 3, "only asked"
    answer = confirm(admin_client, question)
    assert told(answer) == ["2 dead letters were requeued."]
    assert answer.redirect_chain == [(DEAD, 302)]
    assert list(DeadJob.objects.values_list("pk", flat=True)) == [2]
    assert factories.columns(3, "queue", "payload", "priority", "attempts", "state") == (
        queue.name,
        "{}",
        3,
        0,
        "pending",
    )
    assert [job.id for job in queue.claim_batch("w", 5)] == [3, 1], "due at once"
    assert factories.history(3)[0] == ("requeued", 2, None)


def test_the_button_of_the_page(admin_client: Client) -> None:
    factories.dead(5)
    text = admin_client.get(f"{DEAD}5/change/").content.decode()
    assert text.count('form="requeue-form"') == 2, "above and below"
    (url,) = re.findall(r'<form id="requeue-form" method="post" action="([^"]*)"', text)
    (job_id,) = re.findall(r'name="ids" value="([^"]*)"', text)
    assert told(admin_client.post(url, {"ids": job_id}, follow=True)) == ["1 dead letter was requeued."]
    assert factories.where(5) == "live"


def test_it_is_in_the_log(admin_client: Client, admin_user: User) -> None:
    for number in (1, 2, 3):
        factories.dead(number, "q")
    admin_client.post(REQUEUE, {"ids": "1,2"})
    entries = LogEntry.objects.order_by("object_id")
    assert [(entry.object_id, entry.user, entry.get_change_message()) for entry in entries] == [
        ("1", admin_user, "Requeued."),
        ("2", admin_user, "Requeued."),
    ]
    assert admin_client.get(f"{DEAD}1/history/").status_code == 302, "it is no dead letter any more"


def test_the_message_states_what_really_changed(admin_client: Client) -> None:
    factories.dead(1)
    question = ask(admin_client, 1)
    factories.dead(2)
    DeadJob.objects.filter(pk=1).delete()
    assert told(confirm(admin_client, question)) == ["1 dead letter was not there any more."]
    assert told(admin_client.post(REQUEUE, {"ids": "1,2,3"}, follow=True)) == [
        "1 dead letter was requeued.",
        "2 dead letters were not there any more.",
    ]
    assert LogEntry.objects.count() == 1
    gone = ask(admin_client, 1)
    assert gone.status_code == 302
    assert told(admin_client.get(DEAD)) == ["1 dead letter was not there any more."]


def test_a_taken_id_is_told(admin_client: Client, queue: Queue) -> None:
    factories.dead(job_id := queue.enqueue(1), queue.name)
    messages = told(admin_client.post(REQUEUE, {"ids": str(job_id)}, follow=True))
    (new,) = Job.objects.exclude(pk=job_id).values_list("pk", flat=True)
    assert messages == [
        "1 dead letter was requeued.",
        f"Other jobs have these ids by now, so they were given new ones: {job_id} → {new}.",
    ]


def test_all_that_the_filter_shows(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages are selected: only as many as one request may do, and only what was filtered."""
    monkeypatch.setattr(requeueing, "AT_ONCE", 30)
    for number in range(1, 101):
        factories.dead(number, "even" if number % 2 == 0 else "odd")
    question = admin_client.post(
        f"{DEAD}?queue=even", {"action": "requeue", "_selected_action": "2", "select_across": "1"}
    )
    text = question.content.decode()
    assert "30 dead letters are to be requeued" in text
    assert "More were selected" in text
    assert "and 10 more" in text
    answer = confirm(admin_client, question)
    assert told(answer) == ["30 dead letters were requeued."]
    assert answer.redirect_chain == [(f"{DEAD}?queue=even", 302)], "back to where one was"
    assert Job.objects.filter(queue="even").count() == Job.objects.count() == 30


@pytest.mark.parametrize("ids", ["", ",", "x", "1,x", "-1", str(2**63), "9" * 5000, "１", "1;2", "\x00"])
def test_what_is_no_id_is_refused(admin_client: Client, ids: str) -> None:
    factories.dead(1)
    assert admin_client.post(REQUEUE, {"ids": ids}).status_code == 400
    if ids:
        answer = admin_client.post(DEAD, {"action": "requeue", "_selected_action": ids.split(",")})
        assert answer.status_code == 400
    assert DeadJob.objects.count() == 1


def test_too_many_at_once_are_refused(admin_client: Client) -> None:
    ids = ",".join(map(str, range(1, requeueing.AT_ONCE + 2)))
    assert admin_client.post(REQUEUE, {"ids": ids}).status_code == 400
    assert admin_client.post(REQUEUE, {}).status_code == 400
    assert admin_client.get(REQUEUE).status_code == 405


@pytest.mark.parametrize(
    ("permissions", "may"),
    [
        (["view_deadjob"], False),
        (["requeue_deadjob"], False),
        (["view_deadjob", "change_deadjob", "delete_deadjob"], False),
        (["view_deadjob", "requeue_deadjob"], True),
    ],
)
def test_who_may(permissions: list[str], may: bool) -> None:
    factories.dead(1)
    client = reader(*permissions)
    ask(client, 1)
    assert factories.where(1) == "dead"
    assert client.post(REQUEUE, {"ids": "1"}).status_code == (302 if may else 403)
    assert factories.where(1) == ("live" if may else "dead")


def test_strangers_may_not(client: Client) -> None:
    factories.dead(1)
    assert "/login/" in client.post(REQUEUE, {"ids": "1"}).headers["Location"]
    assert factories.where(1) == "dead"


def test_forged_requests_are_refused(admin_user: User) -> None:
    factories.dead(1)
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    assert client.post(REQUEUE, {"ids": "1"}).status_code == 403
    assert factories.where(1) == "dead"


# -- another site, another database -------------------------------------------------------------------

ops = AdminSite(name="ops")
ops.register(DeadJob, DeadJobAdmin)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]


@override_settings(ROOT_URLCONF=__name__)
def test_a_site_of_their_own(admin_client: Client) -> None:
    factories.dead(1)
    factories.dead(2)
    base = DEAD.replace("/admin/", "/ops/")
    text = admin_client.get(f"{base}1/change/").content.decode()
    assert f'action="{base}requeue/"' in text
    assert "/admin/" not in re.sub(r"static/admin/\S*", "", text)
    question = admin_client.post(base, {"action": "requeue", "_selected_action": "1"})
    assert confirm(admin_client, question).redirect_chain == [(base, 302)]
    assert factories.where(1) == "live"


@pytest.fixture
def in_other() -> Iterator[None]:
    tasks = {"BACKEND": "alkstore_django.backends.AlkstoreBackend", "OPTIONS": {"DATABASE": "other"}}
    with override_settings(TASKS={"default": tasks}):
        yield


@pytest.mark.django_db(databases=["default", "other"])
def test_the_database_that_tasks_name(admin_client: Client, in_other: None) -> None:
    factories.dead(1, "in default")
    DeadJob.objects.using("other").create(id=2, queue="in other", payload="{}")
    text = admin_client.get(DEAD).content.decode()
    assert "in other" in text
    assert "in default" not in text
    assert admin_client.get(f"{DEAD}1/change/").status_code == 302
    assert admin_client.get(f"{DEAD}2/change/").status_code == 200
    assert told(confirm(admin_client, ask(admin_client, 2))) == ["1 dead letter was requeued."]
    assert Job.objects.using("other").filter(pk=2).exists()
    assert LogEntry.objects.count() == 1
