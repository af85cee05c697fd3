"""NATS: JetStream answers what it has stored, and drops an id that it has seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import nats
import pytest

from alkstore_django.outbox import Outbox
from tests.brokers.conftest import Serve, Way, is_settled, port
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

STREAM, SUBJECT = "ALKSTORE_TESTS", "alkstore_tests.orders"


def on_server(action: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        client = await nats.connect(f"nats://127.0.0.1:{port('NATS')}")
        try:
            return await action(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(run())


async def remake(stream: Any) -> None:
    await remove(stream)
    await stream.add_stream(name=STREAM, subjects=[SUBJECT])


async def remove(stream: Any) -> None:
    with suppress(nats.js.errors.NotFoundError):
        await stream.delete_stream(STREAM)


async def stored(stream: Any) -> list[tuple[str, Any]]:
    """The id and the payload of each message."""
    last = (await stream.stream_info(STREAM)).state.last_seq
    messages = [await stream.get_msg(STREAM, number) for number in range(1, last + 1)]
    return [(each.headers["Nats-Msg-Id"], json.loads(each.data)) for each in messages]


@pytest.fixture
def stream() -> Any:
    on_server(remake)
    yield
    on_server(remove)


def test_events_arrive_in_order(stream: None, serve: Serve, orders: Outbox) -> None:
    ids = orders.enqueue_many([{"n": n} for n in range(40)], keys=["k"] * 40)
    worker = serve("import nats", url=f"nats://127.0.0.1:{port('NATS')}")
    wait_until(is_settled, worker, what="all is delivered")
    assert on_server(stored) == [(each, {"n": n}) for n, each in enumerate(ids)]


def test_an_answer_is_lost(stream: None, serve: Serve, orders: Outbox, way_to: Callable[[str], Way]) -> None:
    """The event is published again, and the server knows it."""
    way = way_to("NATS")
    way.text = b"the answer to this is lost"
    way.open()
    event_id = orders.enqueue({"text": way.text.decode()})
    worker = serve("import nats", url=f"nats://127.0.0.1:{way.port}")
    wait_until(lambda: way.lost, worker, what="the answer is lost")
    wait_until(is_settled, worker, what="the event is delivered again", patience=60)
    assert on_server(stored) == [(event_id, {"text": "the answer to this is lost"})]


def test_there_is_no_stream(serve: Serve, orders: Outbox) -> None:
    event_id = orders.enqueue({"n": 1})
    worker = serve("import nats", url=f"nats://127.0.0.1:{port('NATS')}")
    worker.wait_for("NoStreamResponseError")
    on_server(remake)
    try:
        wait_until(is_settled, worker, what="the event has arrived")
        assert on_server(stored) == [(event_id, {"n": 1})]
    finally:
        on_server(remove)
