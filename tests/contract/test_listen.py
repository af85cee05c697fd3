"""``notifications.listen`` and ``alisten``: what is heard, when, and what a listener costs."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import notifications
from alkstore_django.hearing import PAGE
from alkstore_django.models import Notification
from alkstore_django.notifications import Heard, alisten, listen, notify, notify_many
from alkstore_django.runtime import ear
from tests import factories
from tests.contract.listening import (
    PATIENCE,
    QUIET,
    begun,
    ears,
    in_a_thread,
    left,
    no_ear_stays,
    rest,
    run,
    take,
)
from tests.processes import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.usefixtures("no_ear_stays"),
]

__all__ = ["no_ear_stays"]


# -- what is heard ------------------------------------------------------------------------------------


def test_what_is_heard() -> None:
    before = factories.now()
    with listen("orders") as heard:
        found = notify("orders", {"id": 7, "é": [1.5, None]})
        message = next(heard)
    assert message == Heard(found, "orders", {"id": 7, "é": [1.5, None]}, message.created_at)
    assert before <= message.created_at <= factories.now()


def test_no_replay() -> None:
    """From the call on, and not from the first question on."""
    notify("orders", "before")
    with listen("orders", timeout=PATIENCE) as heard:
        notify_many("orders", [1, 2])
        assert rest(heard, "orders") == [1, 2]
        notify("orders", 3)
        assert rest(heard, "orders") == [3]


def test_of_its_channel_alone() -> None:
    with listen("a", timeout=PATIENCE) as heard, listen("b", timeout=PATIENCE) as others:
        for channel in ("a", "b", "A", "a b", "ä", "a"):
            notify(channel, channel)
        assert rest(heard) == ["a", "a"]
        assert rest(others, "b") == ["b"]


def test_of_its_database_alone() -> None:
    with listen("a", using="other", timeout=PATIENCE) as heard:
        notify("a", 1)
        notify("a", 2, using="other")
        assert rest(heard, using="other") == [2]


def test_what_is_rolled_back_is_never_heard() -> None:
    with listen("a", timeout=PATIENCE) as heard:
        with transaction.atomic():
            notify("a", 1)
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                notify("a", 2)
                raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            notify("a", 3)
            raise ZeroDivisionError
        notify("a", 4)
        assert rest(heard) == [1, 4]


def test_not_before_the_commit() -> None:
    with listen("a", timeout=QUIET) as early, listen("a", timeout=PATIENCE) as heard:
        with transaction.atomic():
            notify("a", 1)
            assert in_a_thread(lambda: left(early)) == []
        assert rest(heard) == [1]


def test_each_listener_hears_everything() -> None:
    with listen("a", timeout=PATIENCE) as first, listen("a", timeout=PATIENCE) as second:
        notify_many("a", range(3))
        assert (take(3, first), take(3, second)) == ([0, 1, 2], [0, 1, 2])


def test_payloads_are_not_shared() -> None:
    with listen("a") as first, listen("a") as second:
        notify("a", [1])
        next(first).payload.append(2)
        assert next(second).payload == [1]


def test_many_in_order() -> None:
    count = 2 * PAGE + 50
    with listen("a", timeout=PATIENCE) as heard:
        ids = notify_many("a", range(count))
        found = [next(heard) for _ in range(count)]
    assert [each.id for each in found] == ids
    assert [each.payload for each in found] == [*range(count)]


@pytest.mark.parametrize(
    ("text", "payload"),
    [("", None), ("null", None), ("plain", "plain"), ('{"a"', '{"a"'), ("5", 5), ("[1, 2.5]", [1, 2.5])],
)
def test_what_other_programs_write(text: str, payload: Any) -> None:
    with listen("a", interval=0.01) as heard:
        Notification.objects.create(channel="a", payload=text)
        assert next(heard).payload == payload


@pytest.mark.only("sqlite")
def test_what_is_no_text() -> None:
    with listen("a", interval=0.01) as heard:
        factories.ask("INSERT INTO _honker_notifications (channel, payload) VALUES ('a', x'ff41')")
        factories.ask("INSERT INTO _honker_notifications (channel, payload) VALUES ('a', 5)")
        assert take(2, heard) == ["\\xffA", 5]


def test_a_channel_of_any_name() -> None:
    """Other programs may have written anything."""
    with listen(" \t", timeout=PATIENCE, interval=0.01) as heard:
        Notification.objects.create(channel=" \t", payload="1")
        assert take(1, heard) == [1]


def test_rows_that_are_pruned_meanwhile() -> None:
    with listen("a", timeout=PATIENCE) as heard:
        notify("a", 1)
        assert next(heard).payload == 1
        notifications.prune(max_keep=0)
        notify("a", 2)
        assert rest(heard) == [2]


def test_numbers_that_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a database that was restored."""
    monkeypatch.setattr("alkstore_django.hearing.CHECK", 0.0)
    Notification.objects.create(id=10_000, channel="a", payload="0")
    with listen("a", interval=0.01) as heard:
        Notification.objects.all().delete()
        wait_until(lambda: ear.ears["default"]._hearing._newest == 0, what="it looks")
        Notification.objects.create(id=5_000, channel="a", payload="1")
        assert next(heard).payload == 1


# -- how it ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [0, 0.1, timedelta(milliseconds=100)])
def test_timeout(timeout: Any) -> None:
    with listen("a", timeout=timeout) as heard:
        assert left(heard) == []
        notify("a", 1)
        wait_until(lambda: left(heard) == [1], what="it goes on")


def test_timeout_is_of_each_wait() -> None:
    with listen("a", timeout=5) as heard:
        for number in range(3):
            time.sleep(2)
            notify("a", number)
            assert next(heard).payload == number


def test_close() -> None:
    heard = listen("a")
    notify("a", 1)
    heard.close()
    heard.close()
    assert left(heard) == []
    assert ears() == []


def test_close_wakes_who_waits() -> None:
    heard = listen("a")
    threading.Timer(0.1, heard.close).start()
    assert left(heard) == []


def test_a_listener_that_is_forgotten() -> None:
    for message in _first_of(listen("a")):
        assert message.payload == 1
    wait_until(lambda: gc.collect() >= 0 and ears() == [], what="it ends")


def _first_of(heard: Any) -> Iterator[Heard]:
    notify("a", 1)
    for message in heard:
        yield message
        return


def test_after_the_last_a_next() -> None:
    """One ear follows another, whoever comes when it is about to end."""
    for number in range(30):
        with listen("a", timeout=PATIENCE) as heard:
            notify("a", number)
            assert next(heard).payload == number


# -- bad input ----------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"channel": None}, TypeError, "channel must be a string"),
    ({"channel": "a\0"}, ValueError, "No channel"),
    ({"channel": "\ud800"}, ValueError, "No channel"),
    ({"channel": "a", "timeout": -1}, ValueError, "timeout"),
    ({"channel": "a", "timeout": "1"}, TypeError, "timeout"),
    ({"channel": "a", "timeout": float("nan")}, ValueError, "timeout"),
    ({"channel": "a", "interval": 0}, ValueError, "interval must be at least 0.001"),
    ({"channel": "a", "interval": None}, TypeError, "interval"),
]


@pytest.mark.parametrize("kind", [listen, alisten])
@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_input(kind: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with CaptureQueriesContext(connection) as captured, pytest.raises(error, match=message):
        kind(**options)
    assert captured.captured_queries == []
    assert ears() == []


def test_not_in_an_event_loop() -> None:
    async def act() -> None:
        listen("a")

    with pytest.raises(SynchronousOnlyOperation, match="alisten"):
        async_to_sync(act)()


def test_not_in_a_transaction() -> None:
    """To begin there is all right: the transaction may be over when somebody waits."""
    with transaction.atomic():
        heard = listen("a", timeout=PATIENCE)
        with pytest.raises(RuntimeError, match="in a transaction of database 'default'"):
            next(heard)
        notify("a", 1)
    with transaction.atomic(using="other"):
        assert take(1, heard) == [1]
    heard.close()


# -- coroutines ---------------------------------------------------------------------------------------


def test_awaited() -> None:
    async def act() -> list[Any]:
        async with alisten("a", timeout=PATIENCE) as heard:
            await notifications.anotify("a", 1)
            await notifications.anotify("b", 2)
            await notifications.anotify("a", 3)
            return [(await anext(heard)).payload for _ in range(2)]

    assert run(act) == [1, 3]


@pytest.mark.parametrize("begin", ["enter", "await"])
def test_when_a_coroutine_begins(begin: str) -> None:
    async def act() -> Any:
        heard = alisten("a", timeout=PATIENCE)
        await notifications.anotify("a", 0)
        if begin == "await":
            assert await heard is heard
        else:
            assert await heard.__aenter__() is heard
        await notifications.anotify("a", 1)
        found = await anext(heard)
        await heard.aclose()
        return found.payload

    assert run(act) == 1


def test_a_coroutine_that_only_iterates() -> None:
    async def act() -> Any:
        heard = alisten("a")
        first = asyncio.ensure_future(anext(heard))
        await sync_to_async(wait_until, thread_sensitive=False)(lambda: begun() == 1)
        await notifications.anotify("a", 1)
        found = (await first).payload
        await heard.aclose()
        assert [each async for each in heard] == []
        return found

    assert run(act) == 1


def test_a_wait_that_is_cancelled_loses_nothing() -> None:
    async def act() -> list[Any]:
        async with alisten("a", timeout=PATIENCE) as heard:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(heard), 0.02)
            await notifications.anotify_many("a", [1, 2])
            return [(await anext(heard)).payload for _ in range(2)]

    assert run(act) == [1, 2]


def test_many_coroutines_share_one_ear() -> None:
    async def act() -> list[Any]:
        async def first() -> Any:
            async with alisten("a") as heard:
                return (await anext(heard)).payload

        waits = asyncio.gather(*(first() for _ in range(50)))
        await sync_to_async(wait_until, thread_sensitive=False)(lambda: begun() == 50)
        assert len(ears()) == 1
        assert threading.active_count() < 20
        await notifications.anotify("a", 1)
        return await waits

    assert run(act) == [1] * 50


# -- TestCase -----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=False)
def test_in_a_test_case() -> None:
    """It hears what the test itself notifies, though nobody else ever will."""
    notify("a", "before")
    with listen("a", timeout=1000) as heard:
        notify("a", 1)
        with transaction.atomic():
            notify("a", 2)
            notify("b", 3)
        assert left(heard) == [1, 2]
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            notify("a", 4)
            raise ZeroDivisionError
        notify("a", 5)
        assert left(heard) == [5]
    assert left(heard) == []
    assert ears() == []


@pytest.mark.django_db(transaction=False)
def test_in_a_test_case_without_a_timeout() -> None:
    with listen("a") as heard:
        notify("a", 1)
        assert next(heard).payload == 1
        with pytest.raises(RuntimeError, match="give listen\\(\\) a timeout"):
            next(heard)


@pytest.mark.django_db(transaction=False)
def test_coroutines_in_a_test_case() -> None:
    async def act() -> list[Any]:
        async with alisten("a", timeout=PATIENCE) as heard, alisten("a", timeout=0.3) as brief:
            first = asyncio.ensure_future(anext(heard))
            await asyncio.sleep(0.05)
            await notifications.anotify("a", 1)
            assert (await first).payload == 1
            await notifications.anotify("a", 2)
            assert (await anext(heard)).payload == 2
            return [each.payload async for each in brief]

    assert run(act) == [1, 2]
