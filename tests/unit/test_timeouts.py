"""``TaskTimedOut`` comes while the task's code runs, once, and never after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from alkstore_django.exceptions import Discard, TaskTimedOut
from alkstore_django.runtime import timeouts
from alkstore_django.runtime import watch as watch_module
from alkstore_django.runtime.timeouts import Interruption, call_within
from alkstore_django.runtime.watch import Alarm, Watch
from alkstore_django.values import span
from tests.processes import wait_until


@pytest.fixture
def stuck() -> list[Any]:
    return []


@pytest.fixture
def watch(stuck: list[Any]) -> Iterator[Watch]:
    watch = Watch(stuck.append)
    yield watch
    watch.close()


def test_a_thread_that_could_not_be_started(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """There were too many at that moment: the next alarm starts it. The first one was never set."""
    rung: list[str] = []
    with monkeypatch.context() as crowded:
        crowded.setattr(threading.Thread, "start", lambda thread: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            watch.set(Alarm(0.01, lambda: rung.append("first"), None))
    watch.set(Alarm(0.01, lambda: rung.append("second"), None))
    wait_until(lambda: rung)
    assert rung == ["second"]


def spin(seconds: float = 60) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sum(range(10))
    return "done"


def test_code_in_time(watch: Watch) -> None:
    assert call_within(watch, None, 60, lambda: "done") == "done"
    with pytest.raises(KeyError):
        call_within(watch, None, 60, lambda: {}["missing"])


def test_without_a_limit_there_is_no_watch(watch: Watch) -> None:
    assert call_within(watch, None, None, lambda: "done") == "done"
    assert watch._thread is None


def test_its_thread_ends_with_it(stuck: list[Any]) -> None:
    """Also when it is closed in the very moment in which the thread has looked whether it is."""
    for _ in range(500):
        watch = Watch(stuck.append)
        watch.set(Alarm(60, lambda: None, None))
        watch.close()
        assert watch._thread is not None and not watch._thread.is_alive()


def test_code_that_is_late(watch: Watch, stuck: list[Any]) -> None:
    with pytest.raises(TaskTimedOut, match=r"longer than its timeout of 0\.05 s") as caught:
        call_within(watch, None, 0.05, spin)
    assert caught.traceback[-1].name == "spin"
    assert not stuck


def test_the_limit_ends_with_the_code(watch: Watch) -> None:
    """The exception never comes after it, at whatever moment the code ends."""
    ends = {"in time": 0, "late": 0}
    for number in range(400):
        try:
            call_within(watch, None, 0.003, lambda number=number: spin(0.002 + number % 20 * 0.0001))
            ends["in time"] += 1
        except TaskTimedOut:
            ends["late"] += 1
        spin(0.001)  # where it would hit
    assert all(ends.values()), ends


def test_a_watch_that_is_too_late() -> None:
    """The code has ended before it rings."""
    interruption = Interruption()
    interruption.begin()
    interruption.end()
    interruption.send(TaskTimedOut, "late")
    spin(0.01)
    assert interruption.raised is None


def test_an_exception_that_has_not_come_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was sent, and the code ends before Python raises it: it is taken back."""
    sent: list[tuple[int, Any]] = []
    monkeypatch.setattr(timeouts, "_raise_in", lambda thread, exception: sent.append((thread, exception)))
    interruption = Interruption()
    interruption.begin()
    interruption.send(TaskTimedOut, "late")
    interruption.end()
    (thread, exception), taken_back = sent
    assert issubclass(exception, TaskTimedOut)
    assert taken_back == (thread, None)
    assert thread == threading.get_ident()


def test_a_limit_that_is_over_before_it_begins(watch: Watch) -> None:
    for _ in range(50):
        with pytest.raises(TaskTimedOut):
            call_within(watch, None, 1e-9, spin)


def test_code_that_catches_everything(watch: Watch) -> None:
    def swallow() -> str:
        try:
            return spin()
        except Exception:
            return "swallowed"

    with pytest.raises(TaskTimedOut):
        call_within(watch, None, 0.02, swallow)


def test_code_that_decides(watch: Watch) -> None:
    def discard() -> None:
        try:
            spin()
        except TaskTimedOut:
            raise Discard("late") from None

    with pytest.raises(Discard):
        call_within(watch, None, 0.02, discard)


def test_each_thread_has_its_own(watch: Watch) -> None:
    """Many at once: each is hit by its own limit, and by no other."""
    found: dict[int, str] = {}

    def run(number: int) -> None:
        try:
            call_within(watch, number, 0.05 if number % 2 else 60, lambda: spin(60 if number % 2 else 0.3))
            found[number] = "in time"
        except TaskTimedOut:
            found[number] = "late"

    threads = [threading.Thread(target=run, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: "late" if number % 2 else "in time" for number in range(8)}


def test_what_does_not_end_is_stuck(watch: Watch, stuck: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "GRACE", 0.05)
    go_on = threading.Event()

    def hang() -> None:
        go_on.wait(60)

    thread = threading.Thread(
        target=lambda: pytest.raises(TaskTimedOut, call_within, watch, "job", 0.05, hang)
    )
    thread.start()
    wait_until(lambda: stuck == ["job"], what="it is stuck")
    go_on.set()
    thread.join()
    assert stuck == ["job"]


@pytest.mark.parametrize(("value", "seconds"), [(1, 1.0), (0.5, 0.5), (timedelta(milliseconds=250), 0.25)])
def test_spans(value: Any, seconds: float) -> None:
    assert span("timeout", value, low=0.001) == seconds


@pytest.mark.parametrize("value", [0, -1, 0.0001, timedelta(0), float("inf"), float("nan")])
def test_spans_that_are_none(value: Any) -> None:
    with pytest.raises(ValueError, match="timeout must be"):
        span("timeout", value, low=0.001)


@pytest.mark.parametrize("value", ["1", None, True])
def test_spans_of_the_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match="timeout must be seconds or a timedelta"):
        span("timeout", value, low=0.001)
