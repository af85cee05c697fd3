from __future__ import annotations

import os
import signal
import threading

import pytest

from alkstore_django.management.interrupts import Interrupted, Interrupts


def send(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_between_steps_at_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interrupts(), pytest.raises(Interrupted, match=number.name) as caught:
        send(number)
        raise AssertionError("not interrupted")
    assert caught.value.code == 128 + number
    assert signal.getsignal(number) is before


def test_within_a_step_at_its_end() -> None:
    done = []
    with Interrupts() as interrupts, pytest.raises(Interrupted):
        with interrupts.step():
            send()
            done.append("the step")
        done.append("what follows")
    assert done == ["the step"]


def test_the_second_at_once() -> None:
    with Interrupts() as interrupts, pytest.raises(Interrupted), interrupts.step():
        send()
        send()
        raise AssertionError("not interrupted")


def test_an_error_of_the_step_goes_first() -> None:
    with Interrupts() as interrupts, pytest.raises(ZeroDivisionError), interrupts.step():
        send()
        raise ZeroDivisionError


def test_what_is_ignored_stays_ignored() -> None:
    """As in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts():
            send()
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread() -> None:
    """Nothing arrives there, and nothing may be set."""
    found: list[int] = []

    def work() -> None:
        with Interrupts() as interrupts, interrupts.step():
            found.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1]
