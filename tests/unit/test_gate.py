"""The gate before a database that has one writer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from alkstore_django.runtime.gate import Gate
from tests.processes import wait_until


class Visitors:
    """Threads that pass the gate, and the order in which they do."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.passed: list[str] = []
        self.threads: list[threading.Thread] = []

    def send(self, name: str, *, first: bool = False) -> None:
        """Let one line up, and wait until it does."""
        before = self.waiting()

        def visit() -> None:
            with self.gate.passed(first=first):
                self.passed.append(name)

        self.threads.append(threading.Thread(target=visit))
        self.threads[-1].start()
        wait_until(lambda: self.waiting() == before + 1 or name in self.passed)

    def waiting(self) -> int:
        return len(self.gate._line)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()


@pytest.fixture
def visitors() -> Iterator[Visitors]:
    found = Visitors()
    yield found
    found.join()


def test_as_they_came_and_the_clerk_before_them(visitors: Visitors) -> None:
    with visitors.gate.passed():
        for name in ("one", "two", "three"):
            visitors.send(name)
        visitors.send("clerk", first=True)
        assert visitors.passed == []
    visitors.join()
    assert visitors.passed == ["clerk", "one", "two", "three"]


def test_leaving_before_the_end(visitors: Visitors) -> None:
    with visitors.gate.passed() as leave:
        assert leave is not None
        leave()
        visitors.send("one")
        visitors.join()
        with visitors.gate.passed():  # of another, which the first must not end
            leave()
            visitors.send("two")
            assert visitors.passed == ["one"]
    visitors.join()
    assert visitors.passed == ["one", "two"]


def test_an_error_inside_opens_it(visitors: Visitors) -> None:
    with pytest.raises(KeyError), visitors.gate.passed():
        raise KeyError
    visitors.send("next")
    visitors.join()
    assert visitors.passed == ["next"]


def test_who_gives_up_waiting_is_not_waited_for(visitors: Visitors) -> None:
    with visitors.gate.passed():
        with visitors.gate.passed(first=True, timeout=0.01) as leave:
            assert leave is None
        visitors.send("next")
    visitors.join()
    assert visitors.passed == ["next"]
