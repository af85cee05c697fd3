"""Those who want a lock: ``python -m tests.concurrency.contender DIRECTORY SECONDS ROLE ...``.

Each is a process, and takes the lock again and again for so many seconds. What the lock protects is a file
that refuses a token smaller than one it has seen. It prints one line of JSON: for each of them token, when it
was inside, by the clock that all processes of a machine share, and how often it was refused.
"""

from __future__ import annotations

import fcntl
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django

django.setup()

from alkstore_django.locks import LockHeld, lock  # noqa: E402
from tests.concurrency.forks import run  # noqa: E402

NAME = "contended"
LONG, SHORT = 60, 2
"""Seconds: of a lock that is given back, and of one that its holder forgets."""


class Resource:
    """A file that only the newest holder may change."""

    def __init__(self, directory: str) -> None:
        self._path = Path(directory) / "resource"

    def accepts(self, token: int) -> bool:
        with self._path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            seen = file.read().split()
            if seen and token < int(seen[-1]):
                return False
            file.write(f"{token}\n")
            return True


class Contender:
    """Roles are methods; each yields what happened inside."""

    def __init__(self, directory: str, seed: int) -> None:
        self.resource = Resource(directory)
        self.random = random.Random(seed)

    def wait(self) -> Iterator[Any]:
        """In a block, with patience."""
        with lock(NAME, LONG, wait=2) as held:
            yield self.inside(held)

    def hurry(self) -> Iterator[Any]:
        """By hand, and at once."""
        time.sleep(self.random.uniform(0, 0.002))
        held = lock(NAME, LONG).acquire()
        found = self.inside(held)
        assert held.renew() and held.release()
        yield found

    def forget(self) -> Iterator[Any]:
        """Sometimes it goes away without a word, and the lock has to end by itself."""
        time.sleep(self.random.uniform(0, 0.002))
        if self.random.random() < 0.95:
            yield from self.hurry()
            return
        held = lock(NAME, SHORT).acquire()
        entered = time.monotonic()
        left = held.seconds_left
        if not self.resource.accepts(held.token):
            assert held.lost
        if left:
            yield [held.token, entered, entered + left]

    def inside(self, held: Any) -> Any:
        entered = time.monotonic()
        accepted = self.resource.accepts(held.token)
        time.sleep(self.random.uniform(0, 0.004))
        accepted &= self.resource.accepts(held.token)
        assert not held.lost
        return [held.token, entered, time.monotonic() if accepted else None]


def contend(role: str, directory: str, seconds: float, seed: int) -> dict[str, Any]:
    contender = Contender(directory, seed)
    found: list[Any] = []
    refused = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            found += getattr(contender, role)()
        except LockHeld:
            refused += 1
    return {"found": found, "refused": refused}


def main(directory: str, seconds: str, *roles: str) -> None:
    run(contend, [(role, directory, float(seconds), seed) for seed, role in enumerate(roles)])


if __name__ == "__main__":
    main(*sys.argv[1:])
