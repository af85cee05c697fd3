"""``Shutdown``: whose signals are whose."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from alkstore_django.runtime.shutdown import SIGNALS, Shutdown, hear_of_children


@pytest.fixture
def as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGCHLD)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_children_that_nobody_hears_of(as_before: None) -> None:
    """As after ``nohup``-like programs that ignore their end: exit codes would be lost."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    hear_of_children()
    assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL

    def own(number: int, frame: Any) -> None: ...

    signal.signal(signal.SIGCHLD, own)
    hear_of_children()
    assert signal.getsignal(signal.SIGCHLD) is own


def test_a_child_that_is_ended_at_once(as_before: None) -> None:
    """Before it has run at all: the signal is not lost on a handler that it is about to let go of."""
    with Shutdown(1, wake=lambda: None):
        for _ in range(100):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if not child:
                signal.alarm(30)
                signal.pause()
                os._exit(1)
            os.kill(child, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []).isdisjoint(SIGNALS)


def test_a_fork_has_the_handlers_from_before(as_before: None) -> None:
    """Of each that was entered, the outermost last."""
    before = signal.getsignal(signal.SIGTERM)
    with Shutdown(1, wake=lambda: None) as outer, Shutdown(1, wake=lambda: None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # there may be threads of other tests
            child = os.fork()
        if not child:
            os._exit(0 if signal.getsignal(signal.SIGTERM) == before else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert signal.getsignal(signal.SIGTERM) not in (before, outer._received)
    assert signal.getsignal(signal.SIGTERM) == before
