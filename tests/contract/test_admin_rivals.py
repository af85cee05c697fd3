"""Somebody else acts on dead letters, locks and pauses before each statement of a request of the admin."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from alkstore_django import reviving
from alkstore_django.models import DeadJob, Job, Lock, QueueControl
from alkstore_django.queues import Queue
from tests import factories
from tests.contract.rival import losses, told, turns
from tests.pages import DEAD, LOCKS, PAUSES, column

pytestmark = pytest.mark.django_db(transaction=True)


# -- dead letters ---------------------------------------------------------------------------------------


def three_dead_letters() -> None:
    for model in (LogEntry, Job, DeadJob):
        model._default_manager.all().delete()
    for number in (1, 2, 3):
        factories.dead(number, "q", last_error=f"error {number}")


def requeued() -> list[int]:
    """What this one has done: nothing, once the letter is not there."""
    return [*reviving.requeue("default", [2])]


def died_again() -> Any:
    if requeued():
        Job.objects.all().delete()
        factories.dead(2, "q", last_error="another error")


def deleted() -> None:
    DeadJob.objects.filter(pk=2).delete()


def another_died() -> None:
    factories.dead(9, "q", last_error="error 9")


RIVALS = [requeued, died_again, deleted, another_died]


@pytest.mark.parametrize("rival", RIVALS)
def test_what_was_requeued_is_said_and_logged(admin_client: Client, rival: Callable[[], Any]) -> None:
    for turn in turns(rival):
        three_dead_letters()
        with turn:
            answer = admin_client.post(f"{DEAD}requeue/", {"ids": "1,2,3"})
        assert answer.status_code == 302
        messages = told(admin_client, answer)
        logged = sorted(LogEntry.objects.values_list("object_id", flat=True))
        if len(messages) == 1:
            assert messages == ["3 dead letters were requeued."] and logged == ["1", "2", "3"]
            assert turn.did != [2]
        else:
            assert messages == ["2 dead letters were requeued.", "1 dead letter was not there any more."]
            assert logged == ["1", "3"] and turn.did and rival is not another_died


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("everything", [{}, {"select_across": "1"}])
def test_the_question_is_about_those_that_it_names(
    admin_client: Client, rival: Callable[[], Any], everything: dict[str, str]
) -> None:
    for turn in turns(rival):
        three_dead_letters()
        with turn:
            data = {"action": "requeue", "_selected_action": ["1", "2", "3"], **everything}
            text = admin_client.post(DEAD, data).content.decode()
        (ids,) = re.findall(r'name="ids" value="([^"]*)"', text)
        named = re.findall(r"<tr><td>(\d+)</td>", text)
        assert set(named) <= set(ids.split(","))
        assert {*ids.split(",")} - {*named} <= {"2"}, "it is gone since they were found"
        assert f"{len(ids.split(','))} dead letters are to be requeued" in text


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("url", [DEAD, f"{DEAD}?q=2", f"{DEAD}?queue=q&p=1", f"{DEAD}2/change/"])
def test_looking_goes_well(admin_client: Client, rival: Callable[[], Any], url: str) -> None:
    for turn in turns(rival):
        three_dead_letters()
        with turn:
            answer = admin_client.get(url)
        assert answer.status_code == 200 or (answer.status_code == 302 and turn.did)
        assert set(column(answer.content.decode(), "number")) <= {"1", "2", "3", "9"}


def test_what_has_died_again_is_not_said_to_have_stayed(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else requeues it first, and it is dead again before we look what is left."""
    three_dead_letters()
    revive = reviving.revive

    def late(using: str, ids: Any, *args: Any) -> Any:
        revive(using, [2])
        done = revive(using, ids, *args)
        Job.objects.filter(pk=2).delete()
        factories.dead(2, "q")
        return done

    monkeypatch.setattr(reviving, "revive", late)
    answer = admin_client.post(f"{DEAD}requeue/", {"ids": "1,2,3"})
    assert told(admin_client, answer) == [
        "2 dead letters were requeued.",
        "1 dead letter was not there any more.",
    ]


# -- locks and pauses -----------------------------------------------------------------------------------


def held_by(owner: str) -> None:
    """``b`` by somebody, ``a`` and ``c`` as ever."""
    Lock.objects.all().delete()
    for name in "abc":
        Lock.objects.create(name=name, owner=owner if name == "b" else "web", expires_at=factories.at(60))


def taken() -> list[str]:
    """By another, if it is free by then or not."""
    seen = Lock.objects.filter(pk="b").values_list("owner", flat=True)
    found = [*seen]
    Lock.objects.filter(pk="b").delete()
    Lock.objects.create(name="b", owner="another", expires_at=factories.at(60))
    return found


def given_back() -> list[str]:
    found = [*Lock.objects.filter(pk="b").values_list("owner", flat=True)]
    Lock.objects.filter(pk="b").delete()
    return found


@pytest.mark.parametrize("rival", [taken, given_back])
def test_only_what_was_released_is_said_to_be(admin_client: Client, rival: Callable[[], Any]) -> None:
    data = {"action": "release", "_selected_action": [*"abc"], "owner": ["web"] * 3, "confirmed": "yes"}
    for turn in turns(rival):
        LogEntry.objects.all().delete()
        held_by("web")
        with turn:
            answer = admin_client.post(LOCKS, data)
        messages = told(admin_client, answer)
        logged = sorted(LogEntry.objects.values_list("object_id", flat=True))
        if turn.did == ["web"]:
            assert messages == [
                "2 locks were released.",
                "1 lock was not held any more, or by somebody else.",
            ]
            assert logged == ["a", "c"]
        else:
            assert messages == ["3 locks were released."] and logged == ["a", "b", "c"]
        held = [*Lock.objects.values_list("name", "owner")]
        assert held == ([("b", "another")] if turn.did and rival is taken else [])


def resumed() -> bool | str:
    return Queue("b").resume() or "too late"


def test_only_what_was_resumed_is_said_to_be(admin_client: Client) -> None:
    data = {"action": "resume", "_selected_action": [*"abc"]}
    for turn in turns(resumed):
        LogEntry.objects.all().delete()
        for name in "abc":
            Queue(name).pause()
        with turn:
            answer = admin_client.post(PAUSES, data)
        messages = told(admin_client, answer)
        logged = sorted(LogEntry.objects.values_list("object_id", flat=True))
        if turn.did is True:
            assert messages == ["2 queues were resumed.", "1 queue was not paused any more."]
            assert logged == ["a", "c"]
        else:
            assert messages == ["3 queues were resumed."] and logged == ["a", "b", "c"]


# -- what fails in the middle ---------------------------------------------------------------------------

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "requeue": (f"{DEAD}requeue/", {"ids": "1,2,3"}),
    "release": (LOCKS, {"action": "release", "owner": ["web"] * 3, "confirmed": "yes"}),
    "resume": (PAUSES, {"action": "resume"}),
}


def done() -> list[int]:
    """How much of each is done."""
    paused = QueueControl.objects.filter(queue__in="abc").count()
    return [3 - DeadJob.objects.count(), 3 - Lock.objects.count(), 3 - paused]


@pytest.mark.parametrize("what", REQUESTS)
def test_what_was_done_before_a_failure_is_logged(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(reviving, "BATCH", 1)
    admin_client.raise_request_exception = False
    url, data = REQUESTS[what]
    counts = set()
    for loss in losses():
        three_dead_letters()
        held_by("web")
        for name in "abc":
            Queue(name).pause()
        with loss:
            answer = admin_client.post(url, {"_selected_action": [*"abc"], **data})
        assert answer.status_code == (500 if loss.came else 302)
        assert LogEntry.objects.count() == sum(done())
        counts.add(sum(done()))
    assert counts == {0, 1, 2, 3}
