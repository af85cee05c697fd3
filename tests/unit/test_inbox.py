"""The clerk's one wait."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from alkstore_django.runtime.wake.base import Wake
from alkstore_django.runtime.wake.inbox import Inbox

FOREVER = 60.0


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    yield inbox
    inbox.close()


class Ringing(Wake):
    """Hears when its socket has something to read, or when it was asked often enough."""

    def __init__(self, pause: float = FOREVER, after: int | None = None) -> None:
        self.here, self.there = socket.socketpair()
        self.here.setblocking(False)
        self.asked = 0
        self._pause = pause
        self._after = after

    def filenos(self) -> tuple[int, ...]:
        return (self.here.fileno(),)

    def pause(self) -> float:
        return self._pause

    def heard(self) -> bool:
        self.asked += 1
        try:
            return bool(self.here.recv(64))
        except BlockingIOError:
            return self._after is not None and self.asked >= self._after

    def close(self) -> None:
        self.here.close()
        self.there.close()


@pytest.fixture
def ringing() -> Iterator[Ringing]:
    ringing = Ringing()
    yield ringing
    ringing.close()


def letter(number: int) -> Any:
    return f"letter {number}"


def test_mail_that_is_there_is_not_waited_for(inbox: Inbox) -> None:
    inbox.put(letter(1))
    inbox.put(letter(2))
    inbox.wait(FOREVER)
    assert inbox.take() == ["letter 1", "letter 2"]
    assert inbox.take() == []


def test_a_knock_alone_ends_the_wait(inbox: Inbox) -> None:
    inbox.put(None)
    inbox.wait(FOREVER)
    assert inbox.take() == []


def test_a_deadline_ends_the_wait(inbox: Inbox) -> None:
    started = time.monotonic()
    inbox.wait(0.05)
    assert time.monotonic() - started >= 0.05
    inbox.wait(0)


def test_every_letter_wakes_a_sleeper(inbox: Inbox) -> None:
    """Whenever it falls asleep: a letter that came just before is seen, one that comes then is heard."""
    n = 3_000
    received: list[Any] = []

    def write() -> None:
        for number in range(n):
            inbox.put(letter(number))
            while len(received) <= number:  # the next one only when this one has arrived
                time.sleep(0)

    writer = threading.Thread(target=write)
    writer.start()
    while len(received) < n:
        inbox.wait(FOREVER)
        received += inbox.take()
    writer.join()
    assert received == [letter(number) for number in range(n)]


def test_a_signal_handler_may_knock(inbox: Inbox) -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        inbox.put(None)

    previous = signal.signal(signal.SIGUSR1, handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        started = time.monotonic()
        inbox.wait(FOREVER)
        assert time.monotonic() - started < FOREVER
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, previous)


def test_the_database_wakes(inbox: Inbox, ringing: Ringing) -> None:
    timer = threading.Timer(0.1, ringing.there.send, (b"!",))
    timer.start()
    started = time.monotonic()
    inbox.wait(FOREVER, ringing)
    timer.join()
    assert time.monotonic() - started < FOREVER
    assert inbox.take() == []


def test_what_was_heard_before_the_wait(inbox: Inbox, ringing: Ringing) -> None:
    ringing.there.send(b"!")
    inbox.wait(FOREVER, ringing)
    assert ringing.asked == 1


def test_a_busy_clerk_does_not_listen(inbox: Inbox, ringing: Ringing) -> None:
    ringing.there.send(b"!")
    inbox.wait(0.01)
    assert ringing.asked == 0


def test_a_wake_that_looks_by_itself(inbox: Inbox) -> None:
    wake = Ringing(pause=0.001, after=5)
    inbox.wait(FOREVER, wake)
    wake.close()
    assert wake.asked == 5


def test_another_file_to_select_on(inbox: Inbox, ringing: Ringing) -> None:
    """As after a reconnect, under another number or under the same."""
    inbox.wait(0.01, ringing)
    again = Ringing()
    os.dup2(again.here.fileno(), ringing.here.fileno())  # which another thread cannot take in between
    timer = threading.Timer(0.1, again.there.send, (b"!",))
    timer.start()
    started = time.monotonic()
    inbox.wait(FOREVER, ringing)
    assert time.monotonic() - started < FOREVER
    timer.join()
    again.close()


def test_letters_after_the_end(inbox: Inbox) -> None:
    """A thread that is still in a task writes to a worker that has ended."""
    inbox.wait(0.01)
    inbox.close()
    inbox.put(letter(1))
    assert inbox.take() == ["letter 1"]
