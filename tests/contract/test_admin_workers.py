"""The admin's pages of workers and paused queues: what they show, to whom, and what they do."""

from __future__ import annotations

from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alkstore_django.admin import pauses as admin_pauses
from alkstore_django.models import QueueControl, WorkerProcess
from alkstore_django.pauses import paused
from alkstore_django.queues import Queue
from alkstore_django.workers import STALE, Entry
from tests.factories import at
from tests.pages import EVIL, PAUSES, WORKERS, column, field, page, reader

pytestmark = pytest.mark.django_db


def test_workers(admin_client: Client) -> None:
    Entry("default", "first", ["mail*", "bulk"], ["mail-x"]).write(3)
    Entry("default", "second", [EVIL]).write(0)
    Entry("default", "broken", []).write(0)
    WorkerProcess.objects.filter(pk="first").update(started_at=1700000000, pid=12345)
    WorkerProcess.objects.filter(pk="second").update(heartbeat_at=at(-STALE - 5))
    WorkerProcess.objects.filter(pk="broken").update(queues="no JSON", heartbeat_at=at(3))
    text = page(admin_client, WORKERS)
    rows = dict(
        zip(column(text, "worker_id"), zip(*(column(text, name) for name in SHOWN), strict=True), strict=True)
    )
    assert list(rows)[0] == "first"
    assert rows["first"] == ("12345", "mail*, bulk, not mail-x", "3", "11/14/2023 10:13 p.m.", "alive")
    assert rows["second"][1] == EVIL
    assert rows["second"][-1].startswith("silent for 6")
    assert rows["broken"][1] == "-"
    assert EVIL not in text
    assert field(page(admin_client, f"{WORKERS}first/change/"), "serves") == "mail*, bulk, not mail-x"
    assert admin_client.get(f"{WORKERS}add/").status_code == 403
    assert admin_client.post(f"{WORKERS}first/delete/", {"post": "yes"}).status_code == 403


SHOWN = ("process", "serves", "running", "started", "state")


def test_paused_queues(admin_client: Client) -> None:
    Queue("mail").pause(by="deploy")
    Queue("bulk").pause("1d")
    Queue("over").pause("1d")
    QueueControl.objects.filter(pk="over").update(paused_until=at(0))
    QueueControl.objects.filter(pk="mail").update(paused_at=1700000000)
    text = page(admin_client, PAUSES)
    assert column(text, "queue") == ["bulk", "mail"]
    assert column(text, "since")[1] == "11/14/2023 10:13 p.m."
    assert column(text, "until")[1] == "it is resumed"
    assert column(text, "until")[0] != "it is resumed"
    assert column(text, "paused_by") == ["-", "deploy"]
    assert field(page(admin_client, f"{PAUSES}mail/change/"), "paused_by") == "deploy"


def test_pause(admin_client: Client) -> None:
    assert "until it is resumed" in page(admin_client, f"{PAUSES}add/")
    for data, seconds in (({"queue": "mail"}, None), ({"queue": "mail", "for_": "2h"}, 7_200)):
        response = admin_client.post(f"{PAUSES}add/", data)
        assert response.status_code == 302, response.content
        (pause,) = paused()
        assert (pause.queue, pause.by) == ("mail", "admin")
        assert (pause.until and pause.until - pause.since) == seconds
    assert LogEntry.objects.filter(object_id="mail").count() == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"queue": ""}, "This field is required."),
        ({"queue": " mail"}, "The queue name ' mail' begins or ends with white space."),
        ({"queue": "x" * 192}, "A queue name has 1 to 191 characters, this has 192."),
        ({"queue": "mail", "for_": "soon"}, "it must be a duration such as 90s, 10m, 2h or 1d, not 'soon'."),
        ({"queue": "mail", "for_": "0"}, "it must be from 1 to"),
    ],
)
def test_nonsense_is_refused(admin_client: Client, data: dict[str, str], message: str) -> None:
    response = admin_client.post(f"{PAUSES}add/", data)
    assert response.status_code == 200
    assert message in unescape(response.content.decode())
    assert paused() == []


def test_a_pause_that_is_replaced_is_told(admin_client: Client) -> None:
    """Whoever wanted it to last is not there to say so."""
    Queue("mail").pause(by="deploy")
    for data, message in (
        ({"queue": "mail", "for_": "10m"}, "until it is resumed, by deploy: that pause is replaced."),
        ({"queue": "mail"}, "by admin: that pause is replaced."),
        ({"queue": "bulk"}, None),
    ):
        text = unescape(admin_client.post(f"{PAUSES}add/", data, follow=True).content.decode())
        assert (message in text) if message else ("is replaced" not in text)


def test_a_user_whose_name_is_none_elsewhere(client: Client) -> None:
    client.force_login(User.objects.create_superuser("odd\nname"))
    assert client.post(f"{PAUSES}add/", {"queue": "mail"}).status_code == 302
    assert [pause.by for pause in paused()] == [""]


def resume(client: Client, *queues: str) -> int:
    data = {"action": "resume", "_selected_action": queues}
    return int(client.post(PAUSES, data, follow=False).status_code)


def test_resume(admin_client: Client) -> None:
    for name in ("mail", "bulk", "kept"):
        Queue(name).pause()
    assert resume(admin_client, "mail", "bulk") == 302
    assert [pause.queue for pause in paused()] == ["kept"]
    assert "2 queues were resumed." in page(admin_client, PAUSES)
    assert set(LogEntry.objects.values_list("object_id", "change_message")) == {
        ("mail", "Resumed."),
        ("bulk", "Resumed."),
    }


def test_resume_of_what_is_not_paused_any_more(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        Queue(name).pause()
    Queue("b").resume()
    assert resume(admin_client, "a", "b", "nobody") == 302
    text = page(admin_client, PAUSES)
    assert "1 queue was resumed." in text and "2 queues were not paused any more." in text
    monkeypatch.setattr(admin_pauses, "AT_ONCE", 1)
    Queue("d").pause()
    assert resume(admin_client, "c", "d") == 302
    text = page(admin_client, PAUSES)
    assert "1 queue was resumed." in text and "More than 1 were selected: the rest is as it was." in text
    assert [pause.queue for pause in paused()] == ["d"]


def test_permissions(client: Client) -> None:
    Queue("mail").pause()
    Entry("default", "w", ["mail"]).write(0)
    looker = reader("view_queuecontrol", "view_workerprocess")
    assert column(page(looker, WORKERS), "worker_id") == ["w"]
    assert column(page(looker, PAUSES), "queue") == ["mail"]
    assert looker.get(f"{PAUSES}add/").status_code == 403
    assert looker.post(f"{PAUSES}add/", {"queue": "bulk"}).status_code == 403
    resume(looker, "mail")
    assert [pause.queue for pause in paused()] == ["mail"]
    for url in (WORKERS, PAUSES):
        assert client.get(url).status_code == 302, "to the login"


def test_who_may_pause() -> None:
    Queue("mail").pause()
    stranger = reader("view_deadjob", "add_queuecontrol", "delete_queuecontrol")
    for url in (WORKERS, PAUSES, f"{PAUSES}add/", f"{PAUSES}mail/change/", f"{PAUSES}mail/delete/"):
        assert stranger.get(url).status_code == 403, url
    resume(stranger, "mail")
    assert [pause.queue for pause in paused()] == ["mail"]


def test_with_the_permission() -> None:
    operator = reader("view_queuecontrol", "pause_queuecontrol")
    assert operator.post(f"{PAUSES}add/", {"queue": "mail", "for_": "10m"}).status_code == 302
    assert [pause.by for pause in paused()] == ["reader"]
    assert resume(operator, "mail") == 302
    assert paused() == []


def test_the_queries_do_not_grow_with_the_rows(admin_client: Client) -> None:
    def queries(url: str) -> int:
        page(admin_client, url)  # the first visit fills caches of Django's
        with CaptureQueriesContext(connection) as captured:
            page(admin_client, url)
        return len(captured)

    counted = []
    for rows in (3, 60):
        for number in range(rows):
            Queue(f"queue {number}").pause()
            Entry("default", f"worker {number}", ["mail"]).write(0)
        counted.append([queries(url) for url in (WORKERS, PAUSES)])
    assert counted[0] == counted[1]


@pytest.mark.parametrize("key", ["nobody", "%00", "x_5F", "9" * 300])
def test_odd_addresses(admin_client: Client, key: str) -> None:
    for url in (WORKERS, PAUSES):
        assert admin_client.get(f"{url}{key}/change/").status_code in (302, 404)
        assert admin_client.get(url, {"q": "\x00"}).status_code in (200, 302)
