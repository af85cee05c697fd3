"""Those who wait for jobs, and the watcher that looks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

from alkstore_django.runtime import watcher
from tests.processes import wait_until


@pytest.fixture
def no_watcher_yet() -> None:
    """Those of the tests before may take a moment to end: no coroutine waits for that."""
    wait_until(lambda: watchers() == [], what="the watchers of the tests before end")


def is_watched(using: str = "default") -> bool:
    """Whether somebody waits, and was looked for at least once: the watcher sleeps after that."""
    found = watcher._watchers.get(using)
    if found is None or not (found.thread.is_alive() and found._guests):
        return False
    return found._inbox._is_asleep and not found._fresh


def waiters() -> int:
    """How many wait."""
    found = watcher._watchers.get("default")
    return 0 if found is None else len(found._guests)


def watchers() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("alkstore-watcher")]


@contextmanager
def meanwhile(act: Callable[[], Any]) -> Iterator[None]:
    """Do something in another thread once somebody waits."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            wait_until(is_watched, what="somebody waits")
            act()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert errors == []
