"""``notifications.prune``: by age, by rank, by channel, in batches, beside those who notify."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import notifications
from alkstore_django.models import Notification
from alkstore_django.models.notification import BULK
from tests import factories
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


def rows(*ages: int, channel: str = "a", using: str = "default") -> list[int]:
    """Notifications that were put in so many seconds ago; their ids."""
    made = Notification.objects.using(using)
    return [made.create(channel=channel, payload="1", created_at=factories.at(-age)).pk for age in ages]


def left(using: str = "default") -> list[int]:
    return list(Notification.objects.using(using).order_by("id").values_list("id", flat=True))


def many(count: int) -> list[int]:
    """Old ones."""
    made = [Notification(channel="a", payload="1", created_at=1) for _ in range(count)]
    Notification.objects.bulk_create(made, batch_size=500)
    return left()


def with_ids(*ids: int) -> None:
    Notification.objects.bulk_create(Notification(id=each, channel="a", payload="1") for each in ids)


def test_by_age() -> None:
    ids = rows(100, 61, 30, 90, 0)
    assert notifications.prune(older_than=60) == 3
    assert left() == [ids[2], ids[4]]
    assert notifications.prune(older_than=timedelta(minutes=1)) == 0


def test_the_second_of_the_age_counts_as_young() -> None:
    def scenario() -> None:
        Notification.objects.all().delete()
        young, old = rows(60, 61)
        assert notifications.prune(older_than=60) == 1
        assert left() == [young]

    factories.within_a_second(scenario)


def test_by_rank_and_not_by_id() -> None:
    """Ids 90 and 100 are two rows, whatever lies between (honker issue 82)."""
    with_ids(90, 100)
    assert notifications.prune(max_keep=5) == 0
    assert notifications.prune(max_keep=2) == 0
    assert notifications.prune(max_keep=1) == 1
    assert left() == [100]


def test_keep_none() -> None:
    rows(1, 2, 3)
    assert notifications.prune(max_keep=0) == 3
    assert left() == []
    assert notifications.prune(max_keep=0) == 0


def test_either_condition_is_enough() -> None:
    ids = rows(0, 100, 0, 100, 0)
    assert notifications.prune(older_than=60, max_keep=3) == 3
    assert left() == [ids[2], ids[4]]


def test_no_condition() -> None:
    rows(1000)
    with CaptureQueriesContext(connection) as captured:
        assert notifications.prune() == 0
    assert captured.captured_queries == []


def test_all_channels_are_counted_together() -> None:
    rows(0, 0, channel="a")
    ids = rows(0, 0, channel="b")
    assert notifications.prune(max_keep=2) == 2
    assert left() == ids


def test_of_a_channel() -> None:
    first = rows(100, 0, 0, channel="a")
    other = rows(100, 100, 0, channel="b")
    assert notifications.prune(max_keep=2, channel="a") == 1
    assert notifications.prune(older_than=60, channel="b") == 2
    assert notifications.prune(max_keep=0, channel="A") == 0
    assert left() == [*first[1:], other[2]]
    assert notifications.prune(max_keep=0, channel="b") == 1


def test_of_a_channel_with_any_name() -> None:
    rows(0, channel=" \t")
    assert notifications.prune(max_keep=0, channel=" \t") == 1


def test_in_a_database() -> None:
    mine, theirs = rows(100), rows(100, using="other")
    assert notifications.prune(older_than=60, using="other") == 1
    assert (left(), left("other")) == (mine, [])
    assert theirs


def test_in_bounded_batches() -> None:
    many(2 * BULK + 500)
    kept = rows(0, 0)
    with CaptureQueriesContext(connection) as captured:
        assert notifications.prune(older_than=60) == 2 * BULK + 500
    deletes = [each for each in captured.captured_queries if each["sql"].startswith("DELETE")]
    assert len(deletes) == 3
    assert left() == kept


def test_joins_the_transaction() -> None:
    ids = rows(100, 0)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert notifications.prune(older_than=60) == 1
        raise ZeroDivisionError
    assert left() == ids


@contextmanager
def notifying() -> Iterator[list[int]]:
    """Another thread notifies all the time; the ids."""
    ids: list[int] = []
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                ids.append(notifications.notify("a", 1))
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ids
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("options", [{"max_keep": 0}, {"max_keep": 5}, {"older_than": 60}])
def test_what_comes_meanwhile_survives(options: Any) -> None:
    many(2 * BULK)
    with notifying() as ids:
        wait_until(lambda: ids, what="somebody notifies")
        before = set(ids)
        notifications.prune(**options)
        seen = len(ids)
        wait_until(lambda: len(ids) > seen, what="somebody goes on")
    stay = set(left())
    new = set(ids) - before
    # Those that were there when it began to count may be gone; not one that came later.
    assert new & stay and all(gone < min(new & stay) for gone in new - stay)
    assert len(stay) >= options.get("max_keep", 0)


def test_two_at_once() -> None:
    """Each row is deleted by one of them."""
    ids = many(3 * BULK)
    counts: list[int] = []
    start = threading.Barrier(2)

    def work() -> None:
        try:
            start.wait()
            counts.append(notifications.prune(max_keep=10))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 3 * BULK - 10
    assert left() == ids[-10:]
