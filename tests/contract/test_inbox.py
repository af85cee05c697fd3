"""``inbox.once``: each message has its effects once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import transaction
from django.db.transaction import TransactionManagementError

from alkstore_django import inbox
from alkstore_django.models import InboxMessage
from tests.contract.test_races import together
from tests.factories import at, within_a_second

pytestmark = pytest.mark.django_db(transaction=True)


def take(message_id: Any, source: str = "shop") -> bool:
    with transaction.atomic():
        is_new = inbox.once(source, message_id)
        if is_new:
            Group.objects.create(name=f"{source} {message_id} {message_id == 'A'}")
        return is_new


def test_the_second_time_is_told() -> None:
    assert [take("a"), take("a"), take("A"), take("a", "bank"), take(5), take("5")] == [
        True,
        False,
        True,
        True,
        True,
        False,
    ]
    assert Group.objects.count() == 4


def test_a_rollback_forgets_it() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        assert inbox.once("shop", 1)
        raise ZeroDivisionError
    assert take(1)


def test_within_one_transaction() -> None:
    with transaction.atomic():
        assert inbox.once("shop", 1) and not inbox.once("shop", 1)
        Group.objects.create(name="the transaction is as good as before")


def test_outside_a_transaction() -> None:
    with pytest.raises(TransactionManagementError, match="transaction.atomic"):
        inbox.once("shop", 1)
    assert not InboxMessage.objects.exists()


@pytest.mark.parametrize("message_id", ["", " 1", "x" * 192, "1\n"])
def test_bad_names(message_id: str) -> None:
    with transaction.atomic():
        with pytest.raises(ValueError, match="message"):
            inbox.once("shop", message_id)
        with pytest.raises(ValueError, match="source"):
            inbox.once(message_id, 1)
    for wrong in (None, True, 1.5, b"1"):
        with pytest.raises(TypeError, match="message"):
            inbox.once("shop", wrong)


def test_side_by_side() -> None:
    answers = together(*[lambda: take(7)] * 4)
    assert sorted(answers) == [False, False, False, True]
    assert Group.objects.count() == 1


@pytest.mark.only("postgresql", "mysql")  # on SQLite the second one could not begin to write
def test_the_second_waits_for_the_end_of_the_first() -> None:
    noted, done = threading.Event(), threading.Event()

    def first() -> None:
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert inbox.once("shop", 1)
            noted.set()
            assert done.wait(30)
            raise ZeroDivisionError

    def second() -> bool:
        assert noted.wait(30)
        threading.Timer(0.2, done.set).start()
        return take(1)

    assert together(first, second) == [None, True]


def test_old_ones_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "BATCH", 2)

    def scenario() -> None:
        InboxMessage.objects.all().delete()
        for message_id, age in ((1, 59), (2, 60), (3, 61), (4, 999)):
            InboxMessage.objects.create(source="shop", message_id=str(message_id), received_at=at(-age))
        assert inbox.count_old("default", 60) == 3
        assert [inbox.sweep("default", 60) for _ in range(3)] == [2, 1, 0]
        assert InboxMessage.objects.get().message_id == "1"

    within_a_second(scenario)


def test_maintenance_forgets_old_ones() -> None:
    InboxMessage.objects.create(source="shop", message_id="old", received_at=at(-31 * 86_400))
    InboxMessage.objects.create(source="shop", message_id="new", received_at=at(-29 * 86_400))
    call_command("alkprune", verbosity=0)
    assert InboxMessage.objects.get().message_id == "new"
