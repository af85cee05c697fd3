"""Those who wait for jobs, and the watcher that looks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

from alkstore_django.runtime import watcher
from tests.processes import wait_until


def is_watched(using: str = "default") -> bool:
    """Whether somebody waits, and was looked for at least once."""
    found = watcher._watchers.get(using)
    return found is not None and found.thread.is_alive() and bool(found._guests) and not found._fresh


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
