"""Six processes notify in transactions of all kinds: listeners hear each commit once, and no rollback."""

from __future__ import annotations

import json
import threading

import pytest

from alkstore_django.models import Notification
from alkstore_django.notifications import listen, notify, prune
from tests.processes import Workers, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, EACH = 6, 150


class Hearers:
    """Threads that listen until they hear the end."""

    def __init__(self, count: int) -> None:
        self.heard: list[list[int]] = [[] for _ in range(count)]
        self.listeners = [listen("races", timeout=120, interval=0.05) for _ in range(count)]
        self.threads = [threading.Thread(target=self._work, args=[number]) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def _work(self, number: int) -> None:
        for each in self.listeners[number]:
            if each.payload == "end":
                return
            self.heard[number].append(each.id)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()
        for listener in self.listeners:
            listener.close()


def stored() -> set[int]:
    return set(Notification.objects.exclude(payload='"end"').values_list("id", flat=True))


def test_each_commit_is_heard_once(workers: Workers) -> None:
    hearers = Hearers(3)
    process = workers.run("-m", "tests.concurrency.notifier", PROCESSES, EACH)
    wait_until(lambda: hearers.heard[0], process, what="somebody notifies")
    before = stored()
    late = Hearers(1)
    by_then = stored()
    assert process.join(patience=120) == 0, process
    kept = set(json.loads(process.lines[-1]))
    assert kept == stored()
    for heard in hearers.heard:
        wait_until(lambda heard=heard: set(heard) == kept, what="all are heard")
        assert len(heard) == len(kept)
    wait_until(lambda: set(late.heard[0]) >= kept - by_then, what="the rest is heard")
    notify("races", "end")
    for each in (hearers, late):
        each.join()
    assert len(late.heard[0]) == len(set(late.heard[0]))
    assert not set(late.heard[0]) & before


def test_from_the_beginning_and_beside_pruning(workers: Workers) -> None:
    """All of them are heard, whoever deletes old ones meanwhile."""
    hearers = Hearers(2)
    process = workers.run("-m", "tests.concurrency.notifier", PROCESSES, EACH)
    while process.is_running:
        prune(older_than=60)
        threading.Event().wait(0.05)
    assert process.join() == 0, process
    kept: list[int] = json.loads(process.lines[-1])
    for heard in hearers.heard:
        wait_until(lambda heard=heard: set(kept) == set(heard), what="all are heard")
    notify("races", "end")
    hearers.join()
    for heard in hearers.heard:
        assert sorted(heard) == sorted(kept)
