"""The threads and what they tell the clerk."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from alkstore_django.runtime.threads import Threads
from tests.processes import wait_until


class Told:
    """What the clerk is given, and whether it was rung for."""

    def __init__(self) -> None:
        self.gently: list[bool] = []

    def __call__(self, outcome: Any, *, gently: bool) -> None:
        self.gently.append(gently)


def assignments(n: int) -> list[Any]:
    claims = [SimpleNamespace(id=number, attempts=1) for number in range(n)]
    return [SimpleNamespace(claim=claim, batch=1, companions=()) for claim in claims]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def thread(told: Told) -> Iterator[Threads]:
    """A single one, which is started by the test."""
    threads = Threads(1, lambda assignment: [assignment], told)  # type: ignore[arg-type,list-item]
    yield threads
    threads.close()


def test_the_clerk_is_told_when_half_of_a_chunk_has_begun(told: Told, thread: Threads) -> None:
    thread.hand_out(assignments(10))
    thread.start()
    wait_until(lambda: len(told.gently) == 10)
    assert told.gently == [True] * 4 + [False] * 6


def test_one_for_each_thread_is_no_chunk(told: Told, thread: Threads) -> None:
    thread.hand_out(assignments(1))
    thread.start()
    wait_until(lambda: len(told.gently) == 1)
    assert told.gently == [False]


def test_a_clerk_that_looked_in_vain_is_told_of_each(told: Told, thread: Threads) -> None:
    thread.hand_out(assignments(10))
    thread.gathers = False
    thread.start()
    wait_until(lambda: len(told.gently) == 10)
    assert told.gently == [False] * 10


def test_a_batch_is_told_of_once(told: Told) -> None:
    threads = Threads(1, lambda assignment: [assignment] * 2 + [Mock()], told)  # type: ignore[list-item]
    threads.hand_out(assignments(1))
    threads.start()
    wait_until(lambda: len(told.gently) == 3)
    threads.close()
    assert told.gently == [True, True, False]
