"""Pausing queues: what is stored, for how long it is in force, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from alkstore_django import pauses, status
from alkstore_django.models import QueueControl
from alkstore_django.pauses import Pause, paused
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, now, within_a_second

pytestmark = pytest.mark.django_db


def names() -> list[str]:
    return [each.queue for each in paused()]


def test_until_it_is_resumed(queue: Queue) -> None:
    assert not queue.is_paused()
    assert not queue.resume()
    queue.pause(by="deploy")
    assert queue.is_paused()
    (pause,) = paused()
    assert (pause.queue, pause.by, pause.until, pause.ends_in) == (queue.name, "deploy", None, None)
    assert now() - 60 < pause.since <= now()
    assert queue.resume()
    assert not queue.is_paused()
    assert paused() == []
    assert not queue.resume()


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (90, 90),
        (1.5, 2),
        (timedelta(minutes=3), 180),
        ("45", 45),
        ("90s", 90),
        (" 10m ", 600),
        ("2h", 7_200),
        ("1d", 86_400),
        ("007s", 7),
    ],
)
def test_for_a_while(given: Any, seconds: int) -> None:
    def scenario() -> None:
        queue = factories.queue()
        queue.pause(given, by="x")
        (pause,) = [each for each in paused() if each.queue == queue.name]
        assert pause == Pause(queue.name, now(), "x", now() + seconds, seconds)

    within_a_second(scenario)


def test_it_ends_by_the_clock_of_the_database(queue: Queue) -> None:
    queue.pause("1d")
    change_end(queue, at(0))
    assert not queue.is_paused()
    assert not queue.resume()
    assert names() == []
    change_end(queue, at(60))
    assert queue.is_paused()


def change_end(queue: Queue, end: Any) -> None:
    assert QueueControl.objects.filter(pk=queue.name).update(paused_until=end) == 1


def test_a_second_pause_replaces_the_first(queue: Queue) -> None:
    queue.pause("1d", by="first")
    QueueControl.objects.update(paused_at=1)
    queue.pause(by="second")
    (pause,) = paused()
    assert (pause.by, pause.until) == ("second", None)
    assert pause.since > 1
    queue.pause(5)
    (pause,) = paused()
    assert pause.by == ""
    assert pause.until is not None


def test_each_queue_for_itself_and_by_name() -> None:
    for name in ("b", "B", "a", "ä", "_outbox:mail"):
        Queue(name).pause()
    assert names() == sorted(["b", "B", "a", "ä", "_outbox:mail"])
    assert Queue("b").resume()
    assert names() == sorted(["B", "a", "ä", "_outbox:mail"])
    assert not Queue("A").is_paused()


def test_it_is_a_part_of_the_transaction(queue: Queue) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        queue.pause()
        raise ZeroDivisionError
    assert not queue.is_paused()


@pytest.mark.parametrize(
    ("for_", "error", "message"),
    [
        (0, ValueError, "for_ must be from 1 to"),
        (-5, ValueError, "for_ must be from 1 to"),
        (timedelta(0), ValueError, "for_ must be from 1 to"),
        ("0m", ValueError, "for_ must be from 1 to"),
        ("9" * 15 + "d", ValueError, "for_ must be from 1 to"),
        (float("nan"), ValueError, "for_ must be a finite number"),
        ("", ValueError, "for_ must be a duration such as 90s, 10m, 2h or 1d, not ''"),
        ("10 m", ValueError, "such as 90s, 10m, 2h or 1d, not '10 m'"),
        ("-10m", ValueError, "not '-10m'"),
        ("1.5h", ValueError, "not '1.5h'"),
        ("10M", ValueError, "not '10M'"),
        ("١٠m", ValueError, "such as 90s"),
        (True, TypeError, "for_ must be seconds or a timedelta"),
        (b"10m", TypeError, "for_ must be seconds or a timedelta"),
    ],
)
def test_durations_that_are_none(queue: Queue, for_: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        queue.pause(for_)
    assert message in str(caught.value)
    assert names() == []


@pytest.mark.parametrize(
    ("by", "error"), [("a\nb", ValueError), ("x" * 192, ValueError), (" x", ValueError), (7, TypeError)]
)
def test_users_that_are_none(queue: Queue, by: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="user name"):
        queue.pause(by=by)
    assert names() == []


def test_a_pause_is_for_workers(queue: Queue) -> None:
    """A loop of one's own asks ``is_paused`` if it wants to know."""
    job_id = queue.enqueue(1)
    queue.pause()
    job = queue.claim_one("w")
    assert job is not None
    assert job.id == job_id


def test_what_has_ended_is_forgotten(queue: Queue) -> None:
    other, third = factories.queue(), factories.queue()
    for each in (queue, other, third):
        each.pause("1d")
    third.pause()
    change_end(queue, at(-1))
    pauses.forget_ended("default")
    assert set(QueueControl.objects.values_list("queue", flat=True)) == {other.name, third.name}


def test_status(queue: Queue) -> None:
    other = factories.queue()
    other.enqueue(1, delay=60)
    assert [each.paused for each in status.queues("default")] == [None]
    queue.pause(by="x")
    other.pause("10m")

    def look() -> None:
        found = {each.queue: each for each in status.queues("default")}
        assert (found[queue.name].ready, found[queue.name].paused) == (0, paused()[0])
        assert (found[other.name].delayed, found[other.name].paused) == (1, paused()[1])

    within_a_second(look)  # after which a pause ends sooner


def test_known_queues(queue: Queue) -> None:
    assert not status.is_known("default", queue.name)
    queue.enqueue(1)
    assert status.is_known("default", queue.name)
    assert queue.claim_one("w")
    assert status.is_known("default", queue.name)
    assert not status.is_known("default", queue.name.upper())


def test_async() -> None:
    async def scenario() -> list[bool]:
        queue = factories.queue()
        await queue.apause("1h")
        return [await queue.ais_paused(), await queue.aresume(), await queue.ais_paused()]

    assert async_to_sync(scenario)() == [True, True, False]
