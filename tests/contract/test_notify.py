"""``notify``: what is stored, in whose transaction, and what is refused; and who is told that it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import bells, notifications, queues
from alkstore_django.models import Notification
from alkstore_django.sql import tables
from tests import ears, factories

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def stored(using: str = "default") -> list[tuple[int, str, str]]:
    rows = Notification.objects.using(using).order_by("id").values_list("id", "channel", "payload")
    return [(row[0], row[1], row[2]) for row in rows]


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"id": 1, "é": [True, None, 1.5]}, '{"id":1,"\\u00e9":[true,null,1.5]}'),
        ("text\0\ud800", '"text\\u0000\\ud800"'),
        (None, "null"),
        ((1, 2), "[1,2]"),
    ],
)
def test_what_is_stored(payload: Any, text: str) -> None:
    before = factories.now()
    found = notifications.notify("orders", payload)
    assert stored() == [(found, "orders", text)]
    assert before <= Notification.objects.get().created_at <= factories.now()


def test_without_a_payload() -> None:
    notifications.notify("orders")
    assert stored()[0][2] == "null"


def test_ids_rise() -> None:
    first, second = notifications.notify("a"), notifications.notify("b")
    assert first < second
    Notification.objects.all().delete()
    assert notifications.notify("a") > second


def test_joins_the_transaction() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        notifications.notify("orders", 1)
        raise ZeroDivisionError
    assert stored() == []
    with transaction.atomic():
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            notifications.notify("orders", 2)
            raise ZeroDivisionError
        kept = notifications.notify("orders", 3)
    assert stored() == [(kept, "orders", "3")]


@pytest.mark.parametrize("count", [0, 1, 3, 2_500])
def test_many(count: int) -> None:
    found = notifications.notify_many("orders", range(count))
    assert stored() == [(found[n], "orders", str(n)) for n in range(count)]


def test_many_or_none() -> None:
    with pytest.raises(TypeError, match=r"payloads\[2\]"):
        notifications.notify_many("orders", [1, 2, {3}])
    assert stored() == []


def test_in_a_database() -> None:
    notifications.notify("orders", 1, using="other")
    notifications.notify_many("orders", [2], using="other")
    assert [row[2] for row in stored("other")] == ["1", "2"]
    assert stored() == []


def test_awaited() -> None:
    async def act() -> int:
        assert await notifications.anotify_many("a", [1, 2])
        await notifications.anotify("b", 3)
        return await notifications.aprune(max_keep=1)

    assert async_to_sync(act)() == 2
    assert [row[1] for row in stored()] == ["b"]


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: notifications.notify("", 1), ValueError, "channel name has 1 to 191"),
    (lambda: notifications.notify("x" * 192, 1), ValueError, "channel name has 1 to 191"),
    (lambda: notifications.notify(" x", 1), ValueError, "white space"),
    (lambda: notifications.notify("a\0", 1), ValueError, "control character"),
    (lambda: notifications.notify(None, 1), TypeError, "channel name"),  # type: ignore[arg-type]
    (lambda: notifications.notify("a", {1}), TypeError, "at payload"),
    (lambda: notifications.notify("a", [object()]), TypeError, r"payload\[0\]"),
    (lambda: notifications.notify("a", float("nan")), ValueError, "payload is nan"),
    (lambda: notifications.notify("a", {1: 2, "1": 3}), ValueError, "two keys"),
    (lambda: notifications.notify("a", b"1"), TypeError, "payload"),
    (lambda: notifications.notify_many("", [1]), ValueError, "channel name"),
    (lambda: notifications.notify_many("", []), ValueError, "channel name"),
    (lambda: notifications.prune(max_keep=-1), ValueError, "max_keep must be from 0"),
    (lambda: notifications.prune(max_keep=1.5), ValueError, "max_keep"),  # type: ignore[arg-type]
    (lambda: notifications.prune(max_keep=True), TypeError, "max_keep"),
    (lambda: notifications.prune(older_than=-1), ValueError, "older_than"),
    (lambda: notifications.prune(older_than=float("nan")), ValueError, "older_than"),
    (lambda: notifications.prune(older_than="1d"), TypeError, "older_than"),  # type: ignore[arg-type]
    (lambda: notifications.prune(max_keep=1, channel=1), TypeError, "channel"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Refused before any SQL: the caller's transaction stays usable."""
    with transaction.atomic():
        with CaptureQueriesContext(connection) as captured, pytest.raises(error, match=message):
            call()
        assert captured.captured_queries == []
        notifications.notify("sound", 1)
    assert [row[1] for row in stored()] == ["sound"]


CALLS: list[Callable[[], Any]] = [
    lambda: notifications.notify("orders", 1),
    lambda: notifications.notify_many("orders", range(2_500)),
]


@pytest.mark.only("sqlite", "postgresql")
@pytest.mark.parametrize("call", CALLS)
def test_listeners_are_told_after_the_commit(call: Callable[[], Any]) -> None:
    with ears.ear(channel=tables.HEARD, suffix=bells.EAR) as ear:
        call()
        assert ear.rings() == 1
        with transaction.atomic():
            call()
            call()
            assert ear.rings() == 0
        assert ear.rings() == 1
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            call()
            raise ZeroDivisionError
        notifications.notify_many("orders", [])
        assert ear.rings() == 0


@pytest.mark.only("sqlite", "postgresql")
def test_workers_are_not_told() -> None:
    """Nor are listeners told of jobs."""
    with ears.ear() as worker, ears.ear(channel=tables.HEARD, suffix=bells.EAR) as listener:
        notifications.notify("orders", 1)
        assert (worker.rings(), listener.rings()) == (0, 1)
        queues.Queue("a").enqueue(1)
        assert (worker.rings(), listener.rings()) == (1, 0)
        with transaction.atomic():
            queues.Queue("a").enqueue(1)
            notifications.notify("orders", 1)
        assert (worker.rings(), listener.rings()) == (1, 1)


@pytest.mark.only("postgresql")
def test_notify_can_be_turned_off(settings: Any) -> None:
    settings.ALKSTORE = {"NOTIFY": False}
    with ears.ear(channel=tables.HEARD) as ear:
        for call in CALLS:
            call()
        assert ear.rings() == 0


@pytest.mark.django_db(transaction=False)
def test_in_a_test_case() -> None:
    found = notifications.notify("orders", 1)
    assert stored() == [(found, "orders", "1")]
    assert connection.run_on_commit == []


def test_no_table_grows_by_jobs() -> None:
    """Enqueueing writes no rows to wake anybody."""
    queues.Queue("a").enqueue_many(range(100))
    assert stored() == []
