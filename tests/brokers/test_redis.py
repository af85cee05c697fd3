"""Redis streams: an entry for each event, also after answers that are lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from alkstore_django.outbox import Outbox
from tests.brokers.conftest import Serve, Way, is_settled, port
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

STREAM, DATABASE = "alkstore_tests:orders", 15


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    with redis.Redis(port=port("REDIS"), db=DATABASE, decode_responses=True) as server:
        server.delete(STREAM)
        yield server
        server.delete(STREAM)


def entries(server: redis.Redis) -> list[tuple[str, str, Any]]:
    fields = [fields for _, fields in server.xrange(STREAM)]
    return [(each["id"], each["key"], json.loads(each["payload"])) for each in fields]


def test_events_arrive_in_order(server: redis.Redis, serve: Serve, orders: Outbox) -> None:
    ids = orders.enqueue_many([{"n": n} for n in range(40)], keys=["k"] * 40)
    worker = serve("import redis", url=f"redis://127.0.0.1:{port('REDIS')}/{DATABASE}")
    wait_until(is_settled, worker, what="all is delivered")
    assert entries(server) == [(each, "k", {"n": n}) for n, each in enumerate(ids)]


def test_an_answer_is_lost(
    server: redis.Redis, serve: Serve, orders: Outbox, way_to: Callable[[str], Way]
) -> None:
    way = way_to("REDIS")
    way.text = b"the answer to this is lost"
    way.open()
    event_id = orders.enqueue({"text": way.text.decode()})
    worker = serve("import redis", url=f"redis://127.0.0.1:{way.port}/{DATABASE}")
    wait_until(lambda: way.lost, worker, what="the answer is lost")
    wait_until(is_settled, worker, what="the event is delivered again")
    assert entries(server) == [(event_id, "", {"text": "the answer to this is lost"})] * 2
