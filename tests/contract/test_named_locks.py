"""``lock()``: who gets it, for how long, how it is given back, and what is refused at the call."""

from __future__ import annotations

import asyncio
import math
import pickle
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connections, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import held_locks, locks
from alkstore_django.exceptions import LockHeld
from alkstore_django.locks import HeldLock, lock
from alkstore_django.models import Lock
from tests import factories

pytestmark = pytest.mark.django_db(databases=["default", "other"])
committed = pytest.mark.django_db(transaction=True)


def taken_by_another(name: str = "l", seconds: int = 60) -> None:
    Lock.objects.update_or_create(
        name=name, defaults={"owner": "another", "expires_at": factories.at(seconds)}
    )


def stored(name: str = "l") -> tuple[str, int] | None:
    """The owner, and for how many seconds more."""
    return next(((row.owner, row.expires_at - factories.now()) for row in Lock.objects.filter(pk=name)), None)


def about(seconds: int) -> Any:
    """A little less is as good: time goes on, on a busy machine for long."""
    return pytest.approx(seconds, abs=60)


class Clock:
    """That of this process, which can be ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._monotonic = time.monotonic

    def monotonic(self) -> float:
        return self._monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(held_locks, "time", clock)
    return clock


# -- who gets it ----------------------------------------------------------------------------------


def test_one_has_it_until_it_is_given_back() -> None:
    with lock("l", ttl=1000) as held:
        assert isinstance(held, HeldLock) and held.name == "l" and held.using == "default"
        assert stored() == (held.owner, about(1000))
        assert abs(held.expires_at - datetime.now(tz=UTC) - timedelta(seconds=1000)) < timedelta(seconds=60)
        assert 940 < held.seconds_left <= 1000 and not held.lost and not held.is_released
        with pytest.raises(LockHeld) as caught, lock("l"):
            raise AssertionError("two have it")
        with lock("L"), lock("l2"):
            pass
    assert (caught.value.name, caught.value.holder) == ("l", held.owner)
    assert caught.value.expires_at == held.expires_at
    assert held.is_released and not held.lost and stored() is None
    with lock("l"):
        pass


def test_the_refusal_says_who_has_it_and_until_when() -> None:
    Lock.objects.create(name="l", owner="worker 7", expires_at=4_102_444_800)
    with pytest.raises(
        LockHeld, match="^Lock 'l' is held by 'worker 7' until 2100-01-01 00:00:00 UTC.$"
    ) as caught:
        lock("l").acquire()
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert str(copy) == str(caught.value) and copy.expires_at == datetime(2100, 1, 1, tzinfo=UTC)
    Lock.objects.update(expires_at=2**62)
    with pytest.raises(LockHeld, match="^Lock 'l' is held by 'worker 7'.$") as caught:
        lock("l").acquire()
    assert caught.value.expires_at is None


def test_at_the_very_second_of_its_end_it_is_free() -> None:
    taken_by_another()

    def owner_after(seconds: int) -> str | None:
        assert Lock.objects.update(owner="another", expires_at=factories.at(seconds)) == 1
        try:
            return lock("l").acquire().owner
        except LockHeld:
            return None

    assert factories.within_a_second(lambda: owner_after(1)) is None
    owner = factories.within_a_second(lambda: owner_after(0))
    assert owner is not None and stored() == (owner, about(60))


def test_what_has_ended_is_held_by_nobody() -> None:
    taken_by_another(seconds=0)
    assert locks.holder("l") is None and locks.held() == [] and not locks.force_release("l")


def test_the_lock_of_a_dead_holder_ends_by_itself() -> None:
    dead = lock("l", ttl=2).acquire()  # and nobody ever gives it back
    end = Lock.objects.get().expires_at
    held = lock("l", wait=10).acquire()
    assert factories.now() >= end and dead.lost and held.token > dead.token
    assert not dead.renew() and not dead.release()
    assert stored() == (held.owner, about(60))


def test_each_acquisition_has_an_owner_of_its_own() -> None:
    named = lock("l")
    with named as first, pytest.raises(LockHeld):
        named.acquire()
    with named as second:
        pass
    assert first.owner != second.owner and len(first.owner) <= 191


def test_an_owner_that_is_given_extends_what_it_has() -> None:
    first = lock("l", ttl=10, owner="me").acquire()
    second = lock("l", ttl=1000, owner="me").acquire()
    assert second.token == first.token and stored() == ("me", about(1000))
    with pytest.raises(LockHeld, match="held by 'me'"):
        lock("l", owner="you").acquire()
    assert second.release() and not first.release()


def test_a_lock_without_a_token_gets_one_when_it_is_extended() -> None:
    """Taken by the raw manager, or by another program under the same name of an owner."""
    assert Lock.objects.acquire("l", "me", 60)
    assert lock("l", owner="me").acquire().token > 0


def test_another_database() -> None:
    with lock("l", using="other") as held, lock("l") as here:
        assert held.using == "other" and here.using == "default"
        assert [each.owner for each in locks.held(using="other")] == [held.owner]
        assert locks.holder("l", using="other") != locks.holder("l")
        assert held.renew()
    assert not Lock.objects.using("other").exists()


# -- what the holder knows ------------------------------------------------------------------------


def test_renew() -> None:
    with lock("l", ttl=100) as held:
        token, until = held.token, held.expires_at
        assert held.renew(timedelta(minutes=20)) and held.expires_at > until and held.token == token
        assert stored() == (held.owner, about(1200))
        assert held.renew(500) and held.renew() and stored() == (held.owner, about(500))
    assert not held.renew() and not held.lost


def test_what_was_taken_away_is_lost() -> None:
    held = lock("l").acquire()
    taken_by_another()
    assert not held.lost, "how should it know"
    assert not held.renew() and held.lost and not held.renew()
    assert not held.release()
    assert stored() == ("another", about(60))


def test_what_has_ended_is_not_renewed_though_nobody_has_taken_it() -> None:
    def scenario() -> None:
        Lock.objects.all().delete()
        held = lock("l").acquire()
        Lock.objects.update(expires_at=factories.at(0))
        assert not held.renew() and held.lost

    factories.within_a_second(scenario)


def test_it_knows_by_its_own_clock_when_its_time_is_over(
    clock: Clock, django_assert_num_queries: Any
) -> None:
    held = lock("l", ttl=30).acquire()
    with django_assert_num_queries(0):
        clock.ahead = 28
        assert not held.lost and 0 < held.seconds_left <= 2
        clock.ahead = 31
        assert held.lost and held.seconds_left == 0
    assert "lost" in repr(held)
    assert not held.release() and held.lost and stored() is None


def test_what_is_released_in_time_is_never_lost(clock: Clock) -> None:
    held = lock("l", ttl=30).acquire()
    assert held.release() and not held.release()
    clock.ahead = 31
    assert not held.lost and "released" in repr(held)


def test_a_release_that_failed_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    held = lock("l").acquire()
    with monkeypatch.context() as patch:
        patch.setattr(held, "using", "nowhere")
        with pytest.raises(Exception, match="nowhere"):
            held.release()
    assert not held.is_released and held.release()


def test_who_holds_what() -> None:
    assert locks.holder("l") is None and locks.held() == []
    taken_by_another("b", 100)
    with lock("a") as held:
        assert [(each.name, each.owner) for each in locks.held()] == [("a", held.owner), ("b", "another")]
        found = locks.holder("a")
        assert found is not None and found.expires_at == held.expires_at
    assert async_to_sync(locks.aholder)("b") == locks.holder("b") == async_to_sync(locks.aheld)()[0]


def test_what_another_program_wrote_can_be_shown(sqlite: None) -> None:
    factories.ask(
        "INSERT INTO _honker_locks VALUES (CAST(%s AS TEXT), CAST(%s AS TEXT), 9e15)", [b"n\xff", b"o\xff"]
    )
    found = locks.held()
    assert [(each.name, each.owner, each.expires_at) for each in found] == [(r"n\xff", r"o\xff", None)]


def test_force_release(caplog: Any) -> None:
    held = lock("l").acquire()
    assert locks.force_release("l") and not locks.force_release("l")
    assert f"Lock 'l' was taken away from '{held.owner}'." in caplog.text
    with lock("l") as next_one:
        assert next_one.token > held.token
        assert not held.renew() and held.lost and not held.release()
        assert async_to_sync(locks.aforce_release)("l")
    assert "was lost before its end" in caplog.text


def test_force_release_takes_no_more_than_one() -> None:
    taken_by_another("a")
    taken_by_another("b")
    assert locks.force_release("a") and not locks.force_release("c") and not locks.force_release("")
    assert [each.name for each in locks.held()] == ["b"]


# -- with, and decorators -------------------------------------------------------------------------


def test_it_is_given_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), lock("l"):
        raise ZeroDivisionError
    assert stored() is None


def test_a_function() -> None:
    @lock("l", ttl=300)
    def work(number: int, *, more: int = 0) -> int:
        """What it does."""
        found = stored()
        assert found is not None and found[1] == about(300)
        if number:
            raise ValueError(number)
        return more

    assert (work.__name__, work.__doc__) == ("work", "What it does.")
    assert [work(0, more=each) for each in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="7"):
        work(7)
    assert stored() is None
    taken_by_another()
    with pytest.raises(LockHeld):
        work(0)


def test_a_function_that_calls_itself_is_not_let_in_twice() -> None:
    @lock("l")
    def again(times: int) -> None:
        if times:
            again(times - 1)

    again(0)
    with pytest.raises(LockHeld):
        again(1)
    assert stored() is None


@committed
def test_concurrent_calls_have_acquisitions_of_their_own() -> None:
    """One holds it while the others are refused, and its end is not theirs."""
    inside, go_on = threading.Event(), threading.Event()
    shared = lock("l")

    @shared
    def work() -> None:
        inside.set()
        assert go_on.wait(30)

    def call() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=call)
    thread.start()
    try:
        assert inside.wait(30)
        before = stored()
        for _ in range(3):
            with pytest.raises(LockHeld):
                work()
            with pytest.raises(LockHeld), shared:
                pass
        after = stored()
        assert before is not None and after is not None and before[0] == after[0]
    finally:
        go_on.set()
        thread.join(30)
    assert stored() is None


def test_blocks_of_one_object_end_each_on_its_own() -> None:
    mine = lock("l", owner="me")
    with mine as outer, mine as inner:
        assert outer is not inner
    with pytest.raises(RuntimeError, match="left already, or was entered in several other"):
        mine.__exit__(None, None, None)


@pytest.mark.parametrize("name", [17, None, b"l", ["l"]])
def test_names_to_look_for_are_strings(name: Any) -> None:
    for ask in (locks.holder, locks.force_release):
        with transaction.atomic(), pytest.raises(TypeError, match="A lock name must be a string"):
            ask(name)
        assert not Lock.objects.exists()


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 500, " l "])
def test_nobody_holds_what_is_no_name(name: str) -> None:
    with transaction.atomic():
        assert locks.holder(name) is None and not locks.force_release(name)
        assert not Lock.objects.exists()


def test_a_name_of_another_program_is_found_whatever_it_is() -> None:
    for name in (" l ", "a\tb"):
        Lock.objects.create(name=name, owner="theirs", expires_at=4_000_000_000)
        found = locks.holder(name)
        assert found is not None and found.owner == "theirs"
        assert locks.force_release(name) and locks.holder(name) is None


def test_objects_that_are_called_hold_it_for_the_whole_call() -> None:
    class Caller:
        async def __call__(self) -> Any:
            await asyncio.sleep(0)
            return await locks.aholder("l")

    class Generating:
        def __call__(self) -> Iterator[int]:
            yield 1

    assert async_to_sync(lock("l")(Caller()))() is not None  # type: ignore[type-var]
    with pytest.raises(TypeError, match="is a generator"):
        lock("l")(Generating())


def test_what_is_no_function() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def anumbers() -> Any:
        yield 1

    for generator in (numbers, anumbers):
        with pytest.raises(
            TypeError, match="is a generator: the lock would be given back before its first step"
        ):
            lock("l")(generator)
    with pytest.raises(TypeError, match=r"lock\('l'\) decorates a function, not 7"):
        lock("l")(7)  # type: ignore[type-var]


def test_a_block_whose_lock_is_taken_away_goes_on(caplog: Any) -> None:
    with lock("l"):
        taken_by_another()
    assert "Lock 'l' of " in caplog.text and "was lost before its end" in caplog.text
    assert stored() == ("another", about(60))


@committed
def test_a_database_that_is_away_at_the_end_does_not_undo_what_was_done(
    caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, *args: Any) -> None:
        raise DatabaseError("away")

    with lock("l") as held:
        monkeypatch.setattr(type(Lock.objects), "release", fail)
    assert "Lock 'l' could not be given back, and ends by itself: away" in caplog.text
    monkeypatch.undo()
    assert held.release()


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ttl": 0}, ValueError, "ttl must be from 1 to"),
        ({"ttl": -1}, ValueError, "ttl must be from 1 to"),
        ({"ttl": 0.5}, ValueError, "ttl must be from 1 to"),
        ({"ttl": math.nan}, ValueError, "ttl must be a finite number of seconds, not nan"),
        ({"ttl": math.inf}, ValueError, "ttl must be a finite number of seconds, not inf"),
        ({"ttl": 10**12}, ValueError, "ttl must be from 1 to"),
        ({"ttl": timedelta(0)}, ValueError, "ttl must be from 1 to"),
        ({"ttl": None}, TypeError, "ttl must be seconds or a timedelta, not None"),
        ({"ttl": "60"}, TypeError, "ttl must be seconds or a timedelta, not '60'"),
        ({"ttl": True}, TypeError, "ttl must be seconds or a timedelta, not True"),
        ({"ttl": 1, "renew": True}, ValueError, "ttl must be at least 2 seconds with renew=True"),
        ({"wait": -1}, ValueError, "wait must be from 0 to"),
        ({"wait": math.nan}, ValueError, "wait must be a finite number"),
        ({"wait": "5"}, TypeError, "wait must be seconds or a timedelta"),
        ({"owner": ""}, ValueError, "A lock owner name has 1 to 191 characters, this has 0"),
        ({"owner": "x" * 192}, ValueError, "A lock owner name has 1 to 191 characters"),
        ({"owner": 7}, TypeError, "A lock owner name must be a string, not int"),
        ({"name": ""}, ValueError, "A lock name has 1 to 191 characters, this has 0"),
        ({"name": "x" * 192}, ValueError, "A lock name has 1 to 191 characters, this has 192"),
        ({"name": "a\0b"}, ValueError, "holds the control character"),
        ({"name": " a"}, ValueError, "begins or ends with white space"),
        ({"name": None}, TypeError, "A lock name must be a string, not NoneType"),
        ({"name": len}, TypeError, "A lock name must be a string, not builtin_function_or_method"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_at_the_call(options: Any, error: type[Exception], message: str) -> None:
    with CaptureQueriesContext(connections["default"]) as captured, pytest.raises(error, match=message):
        lock(**{"name": "l", **options})
    assert not captured.captured_queries


def test_a_bad_renewal_loses_nothing() -> None:
    with lock("l") as held:
        for bad in (0, math.nan, "5"):
            with pytest.raises((TypeError, ValueError), match="ttl must be"):
                held.renew(bad)  # type: ignore[arg-type]
        assert held.renew()


def test_fractions_are_rounded_up() -> None:
    assert lock("l", ttl=1.5).ttl == 2 and lock("l", ttl=timedelta(milliseconds=1500)).ttl == 2
    assert lock("x" * 191, wait=0.25).wait == 0.25
