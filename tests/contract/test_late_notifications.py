"""Ids are given before the commit: what commits late, under a lower id, is heard all the same, and once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connections, transaction

from alkstore_django import gaps, hearing, notifications
from alkstore_django.hearing import Hearing
from alkstore_django.models import Notification, NotificationManager
from alkstore_django.notifications import listen, notify, notify_many
from tests import factories
from tests.processes import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql", "mysql")]

PATIENCE = 60


def insert(cursor: Any, payload: int, channel: str = "a") -> None:
    cursor.execute(
        "INSERT INTO _honker_notifications (channel, payload) VALUES (%s, %s)", [channel, str(payload)]
    )


@contextmanager
def open_transaction(*payloads: int, channel: str = "a") -> Iterator[None]:
    """Somebody else notifies, and commits at the end."""
    with factories.another_session() as cursor:
        for payload in payloads:
            insert(cursor, payload, channel)
        yield


@contextmanager
def rolled_back(payload: int) -> Iterator[None]:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        notify("a", payload)
        raise ZeroDivisionError
    yield


@pytest.fixture
def hears(monkeypatch: pytest.MonkeyPatch) -> Hearing:
    """It does not look for what was begun before."""
    monkeypatch.setattr(hearing, "WINDOW", 1)
    notify("a", 0)
    begun = Hearing("default")
    begun.begin()
    return begun


def hear(hears: Hearing, channel: str = "a") -> list[int]:
    """The payloads of everything that has come."""
    found: list[int] = []
    is_more = True
    while is_more:
        messages, is_more = hears.look([channel])
        found += [int(message.raw or 0) for message in messages]
    return found


def missing(hears: Hearing) -> int:
    return len(hears._gaps)


def test_a_late_commit(hears: Hearing) -> None:
    with open_transaction(1):
        notify("a", 2)
        assert hear(hears) == [2]
        notify("a", 3)
        assert hear(hears) == [3]
    assert hear(hears) == [1]
    assert hear(hears) == []
    assert missing(hears) == 0


def test_several_late_commits_in_any_order(hears: Hearing) -> None:
    with open_transaction(1, 2):
        with open_transaction(3), open_transaction(4):
            notify("a", 5)
            assert hear(hears) == [5]
        assert hear(hears) == [3, 4]
        notify("a", 6)
        assert hear(hears) == [6]
    notify("a", 7)
    assert hear(hears) == [1, 2, 7]
    assert hear(hears) == []


def test_what_was_open_when_the_listener_began() -> None:
    """It is committed later, so it is heard; what is committed is not."""
    notify("a", 0)
    with open_transaction(1):
        notify("a", 2)
        hears = Hearing("default")
        hears.begin()
        assert hear(hears) == []
        notify("a", 3)
        assert hear(hears) == [3]
    assert hear(hears) == [1]
    assert hear(hears) == []


def test_in_savepoints(hears: Hearing) -> None:
    done, begun = threading.Event(), threading.Event()

    def work() -> None:
        with transaction.atomic():
            with transaction.atomic():
                notify("a", 1)
            with rolled_back(2), transaction.atomic():
                notify("a", 3)
            begun.set()
            done.wait(PATIENCE)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(PATIENCE)
    notify("a", 4)
    assert hear(hears) == [4]
    done.set()
    thread.join()
    assert hear(hears) == [1, 3]


def test_on_other_channels(hears: Hearing) -> None:
    with open_transaction(1, channel="b"), open_transaction(2, channel="a"):
        notify("b", 3)
        assert hear(hears) == []
    assert hear(hears) == [2]


def test_many_at_once(hears: Hearing) -> None:
    """More than one look reads."""
    count = 2 * hearing.PAGE + 7
    with open_transaction(*range(count)):
        notify("a", -1)
        assert hear(hears) == [-1]
    assert hear(hears) == [*range(count)]
    assert missing(hears) == 0


def test_however_late(hears: Hearing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long after what was rolled back has been given up."""
    monkeypatch.setattr(hearing, "YOUNG", 0.0)
    with open_transaction(1):
        with rolled_back(2):
            pass
        notify("a", 3)
        assert hear(hears) == [3]
        monkeypatch.setattr(hearing, "GRACE", 0.0)
        for number in range(4, 10):
            notify("a", number)
            assert hear(hears) == [number]
        assert missing(hears) == 1  # both numbers
    assert hear(hears) == [1]
    assert hear(hears) == []
    assert missing(hears) == 0


def test_what_never_comes_is_given_up(hears: Hearing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "YOUNG", 0.0)
    monkeypatch.setattr(hearing, "GRACE", 0.2)
    for number in range(5):
        with rolled_back(-1):
            notify("a", number)
    assert hear(hears) == [*range(5)]
    wait_until(lambda: hear(hears) == [] and missing(hears) == 0, what="the gaps are given up")


@pytest.mark.only("postgresql")
def test_postgresql_knows_at_once(hears: Hearing) -> None:
    """Who is not writing any more cannot bring anything. A long transaction that notified nobody is no
    reason to wait."""
    with factories.another_session() as cursor:
        cursor.execute("INSERT INTO django_content_type (app_label, model) VALUES ('x', 'y')")
        with rolled_back(1):
            notify("a", 2)
        assert hear(hears) == [2]
        assert hear(hears) == []
        assert missing(hears) == 0
        cursor.execute("DELETE FROM django_content_type WHERE app_label = 'x'")


@pytest.mark.only("mysql")
def test_mariadb_waits_for_rows_that_have_a_number(hears: Hearing) -> None:
    """An INSERT of many rows gives their numbers first: what cannot be seen yet may still come."""
    first = notify("a", 1)
    factories.ask("ALTER TABLE _honker_notifications AUTO_INCREMENT = %s", [first + 10])
    assert notify("a", 2) == first + 10
    assert hear(hears) == [1, 2]
    assert missing(hears) == 1
    Notification.objects.create(id=first + 5, channel="a", payload="3")
    assert hear(hears) == [3]


def test_a_search_that_fails_loses_nothing(hears: Hearing, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before it is heard in the next look."""

    def fail(self: Any, *args: Any) -> Any:
        raise OperationalError("it is away")

    with open_transaction(1):
        notify("a", 2)
        with monkeypatch.context() as patched:
            patched.setattr(NotificationManager, "among", fail)
            with pytest.raises(OperationalError, match="it is away"):
                hear(hears)
        notify("a", 3)
        assert hear(hears) == [2, 3]
    assert hear(hears) == [1]


def test_there_is_a_bound(
    hears: Hearing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gaps, "MOST", 3)
    with open_transaction(-1):
        for number in range(6):
            with rolled_back(-1):
                notify("a", number)
        assert hear(hears) == [*range(6)]
        assert missing(hears) <= 3
    assert "Too much is missing: 3 gaps in the ids of notifications are given up." in caplog.text


def test_pruned_rows_hold_up_nobody(hears: Hearing) -> None:
    notify_many("a", range(1, 2_001))
    assert hear(hears) == [*range(1, 2_001)]
    notifications.prune(max_keep=10)
    notify("a", 2_001)
    assert hear(hears) == [2_001]
    assert missing(hears) == 0


def test_a_beginning_on_a_table_with_holes() -> None:
    """What was pruned before is not looked for."""
    notify_many("a", range(100))
    Notification.objects.exclude(payload__endswith="7").delete()
    notify("a", 100)
    hears = Hearing("default")
    hears.begin()
    assert hear(hears) == []
    notify("a", 1)
    assert hear(hears) == [1]


def test_a_listener_hears_it() -> None:
    with listen("a", timeout=PATIENCE, interval=0.05) as heard:
        with open_transaction(1):
            ids = [notify("a", 2), notify("a", 3)]
            assert [next(heard).id for _ in ids] == ids
        assert next(heard).payload == 1


def test_two_listeners_of_which_one_comes_late() -> None:
    with listen("a", timeout=PATIENCE, interval=0.05) as heard, factories.another_session() as cursor:
        insert(cursor, 1)
        notify("a", 2)
        assert next(heard).payload == 2
        with listen("a", timeout=PATIENCE, interval=0.05) as later:
            cursor.connection.commit()
            assert next(heard).payload == 1
            assert next(later).payload == 1
