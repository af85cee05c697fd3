"""Brokers on loopback: 127.0.0.1, or ALKSTORE_AMQP_PORT, ALKSTORE_NATS_PORT and ALKSTORE_REDIS_PORT there."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from alkstore_django import registry
from alkstore_django.models import Job
from alkstore_django.outbox import Outbox, outbox
from tests.brokers import recipes
from tests.processes import Process, Workers, workers
from tests.proxy import Proxy

__all__ = ["workers"]

PORTS = {"AMQP": "5672", "NATS": "4222", "REDIS": "6379"}

Serve = Callable[..., Process]


def port(broker: str) -> int:
    """Where it listens. Skips the test if nobody does, unless ALKSTORE_REQUIRE says that somebody must."""
    number = int(os.environ.get(f"ALKSTORE_{broker}_PORT", PORTS[broker]))
    with suppress(OSError), socket.create_connection(("127.0.0.1", number), timeout=5):
        return number
    if os.environ.get("ALKSTORE_REQUIRE") == "1":
        pytest.fail(f"nothing answers on 127.0.0.1:{number} ({broker})")
    pytest.skip(f"nothing answers on 127.0.0.1:{number} ({broker})")


def is_settled() -> bool:
    return not Job.objects.exists()


class Way(Proxy):
    """A way to a broker, which can lose an answer: that to the next bytes that hold ``text``."""

    text: bytes | None = None
    lost = 0
    doomed: object = None

    def cut(self) -> None:
        """End the connections that there are; others may be made."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def question(self, link: object, data: bytes) -> bool:
        if self.text is not None and self.text in data:
            self.doomed, self.text = link, None
        return True

    def answer(self, link: object, data: bytes) -> bool:
        if link is self.doomed:
            self.lost, self.doomed = self.lost + 1, None
            return False
        return True


@pytest.fixture
def way_to() -> Iterator[Callable[[str], Way]]:
    ways: list[Way] = []

    def make(broker: str) -> Way:
        ways.append(Way("127.0.0.1", port(broker)))
        return ways[-1]

    yield make
    for way in ways:
        way.close()


@pytest.fixture
def serve(workers: Workers, tmp_path: Path) -> Serve:
    """Start a worker that has the recipe with these words."""

    def start(*words: str, url: str = "", kafka: str = "{}") -> Process:
        recipes.install(tmp_path, recipes.recipe(*words))
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        settings = {"DJANGO_SETTINGS_MODULE": "tests.brokers.settings", "PYTHONPATH": path}
        return workers.start(
            "--interval", 0.1, command="alkrelay", ALKSTORE_BROKER=url, ALKSTORE_KAFKA=kafka, **settings
        )

    return start


@pytest.fixture
def orders() -> Iterator[Outbox]:
    """The outbox of the recipes, for those who only enqueue."""
    declared = outbox("orders")(lambda event: pytest.fail("delivered by the test itself"))
    yield declared
    del registry._handlers[declared.queue_name]
