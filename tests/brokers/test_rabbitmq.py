"""RabbitMQ with publisher confirms: what it has not confirmed is delivered again, under the same id."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from alkstore_django.outbox import Outbox
from tests.brokers.conftest import Serve, Way, is_settled, port
from tests.brokers.recipes import recipe
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

EXCHANGE, QUEUE, KEY = "alkstore_tests", "alkstore_tests_orders", "orders"


def url(number: int) -> str:
    return f"amqp://guest:guest@127.0.0.1:{number}/%2F?heartbeat=30&blocked_connection_timeout=20"


class Rabbit:
    """The exchange of the recipe, and a queue, made anew."""

    def __init__(self) -> None:
        self.connection = pika.BlockingConnection(pika.URLParameters(url(port("AMQP"))))
        self.channel = self.connection.channel()
        self.tidy()
        self.channel.exchange_declare(EXCHANGE, "direct", durable=True)

    def bind(self, **arguments: Any) -> None:
        self.channel.queue_declare(QUEUE, durable=True, arguments=arguments)
        self.channel.queue_bind(QUEUE, EXCHANGE, KEY)

    def count(self) -> int:
        return int(self.channel.queue_declare(QUEUE, passive=True).method.message_count)

    def take(self) -> list[tuple[pika.BasicProperties, Any]]:
        """All that is there."""
        found = []
        while (each := self.channel.basic_get(QUEUE, auto_ack=True))[0] is not None:
            found.append((each[1], json.loads(each[2])))
        return found

    def tidy(self) -> None:
        self.channel.queue_delete(QUEUE)
        self.channel.exchange_delete(EXCHANGE)

    def close(self) -> None:
        self.tidy()
        self.connection.close()


@pytest.fixture
def rabbit() -> Iterator[Rabbit]:
    rabbit = Rabbit()
    yield rabbit
    rabbit.close()


@pytest.fixture
def way(way_to: Callable[[str], Way]) -> Way:
    return way_to("AMQP")


def test_events_arrive_in_order_and_lasting(rabbit: Rabbit, serve: Serve, orders: Outbox) -> None:
    rabbit.bind()
    with transaction.atomic():
        ids = orders.enqueue_many([{"n": n} for n in range(60)], keys=[f"k{n % 3}" for n in range(60)])
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        orders.enqueue({"n": -1})
        1 / 0  # noqa: B018
    worker = serve("import pika", "@outbox", url=url(port("AMQP")))
    wait_until(is_settled, worker, what="all is delivered")
    found = rabbit.take()
    assert {properties.message_id: payload["n"] for properties, payload in found} == dict(
        zip(ids, range(60), strict=True)
    )
    for key in range(3):
        of_key = [payload["n"] for properties, payload in found if properties.headers == {"key": f"k{key}"}]
        assert of_key == list(range(key, 60, 3))
    assert {properties.delivery_mode for properties, _ in found} == {2}


def test_the_broker_is_away(rabbit: Rabbit, serve: Serve, orders: Outbox, way: Way) -> None:
    rabbit.bind()
    event_id = orders.enqueue({"n": 1})
    worker = serve("import pika", "@outbox", url=url(way.port))
    worker.wait_for("AMQPConnectionError")
    way.open()
    wait_until(is_settled, worker, what="the event has arrived")
    ((properties, payload),) = rabbit.take()
    assert (properties.message_id, payload) == (event_id, {"n": 1})


def test_a_confirm_is_lost(rabbit: Rabbit, serve: Serve, orders: Outbox, way: Way) -> None:
    """The broker has the message, and nobody knows: it comes again, and has its effect once."""
    rabbit.bind()
    way.text = b"the confirm of this is lost"
    way.open()
    event_id = orders.enqueue({"name": way.text.decode()})
    worker = serve("import pika", "@outbox", url=url(way.port))
    wait_until(lambda: way.lost, worker, what="the confirm is lost")
    wait_until(is_settled, worker, what="the event is delivered again")
    assert rabbit.count() == 2
    seen: list[str] = []
    consume(rabbit, seen, 2)
    assert seen == [event_id, event_id]
    assert Group.objects.count() == 1


def consume(rabbit: Rabbit, seen: list[str], messages: int) -> None:
    """By the documented receiver, until it has acknowledged so many."""
    names: dict[str, Any] = {"handle": lambda message: Group.objects.create(name=message["name"])}
    exec(recipe("inbox.once"), names)  # noqa: S102 - the documentation is ours

    def receive(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        seen.append(properties.message_id)
        names["receive"](channel, method, properties, body)
        if len(seen) == messages:
            channel.stop_consuming()

    rabbit.channel.basic_consume(QUEUE, receive)
    rabbit.channel.start_consuming()
    assert rabbit.count() == 0


def test_a_connection_that_was_closed_while_it_was_idle(
    rabbit: Rabbit, serve: Serve, orders: Outbox, way: Way
) -> None:
    """Costs no attempt: the next delivery has another one."""
    rabbit.bind()
    way.open()
    worker = serve("import pika", "@outbox", url=url(way.port))
    orders.enqueue({"n": 1})
    wait_until(lambda: rabbit.count() == 1, worker, what="the first has arrived")
    wait_until(is_settled, worker, what="the first is settled")
    way.cut()
    orders.enqueue_many([{"n": n} for n in range(2, 10)])
    wait_until(lambda: rabbit.count() == 9, worker, what="all have arrived")
    assert worker.count("AMQP") == worker.count("Traceback") == 0, worker


def test_a_queue_that_is_full(rabbit: Rabbit, serve: Serve, orders: Outbox) -> None:
    """The broker refuses by a negative confirm."""
    rabbit.bind(**{"x-max-length": 1, "x-overflow": "reject-publish"})
    rabbit.channel.basic_publish(EXCHANGE, KEY, json.dumps({"n": 0}))
    event_id = orders.enqueue({"n": 1})
    worker = serve("import pika", "@outbox", url=url(port("AMQP")))
    worker.wait_for("NackError")
    assert [payload for _, payload in rabbit.take()] == [{"n": 0}]
    wait_until(is_settled, worker, what="the event has arrived")
    assert [properties.message_id for properties, _ in rabbit.take()] == [event_id]


def test_nobody_has_bound_a_queue(rabbit: Rabbit, serve: Serve, orders: Outbox) -> None:
    event_id = orders.enqueue({"n": 1})
    worker = serve("import pika", "@outbox", url=url(port("AMQP")))
    worker.wait_for("UnroutableError")
    rabbit.bind()
    wait_until(is_settled, worker, what="the event has arrived")
    assert [properties.message_id for properties, _ in rabbit.take()] == [event_id]
