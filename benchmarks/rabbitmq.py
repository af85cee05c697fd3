"""From the outbox to RabbitMQ with publisher confirms, by the recipe of the documentation."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from alkstore_django import registry
from alkstore_django.outbox import Outbox
from tests.brokers.recipes import recipe

from .measure import medians, rate, show
from .outbox import forget, relayed

PORT = int(os.environ.get("ALKSTORE_AMQP_PORT", "5672"))
EXCHANGE, QUEUE, KEY = "alkstore_tests", "alkstore_tests_orders", "orders"
THREADS = 4


def run(quick: bool) -> None:
    try:
        import pika
    except ImportError:
        print("\nRabbitMQ: not measured, its client is missing (pip install pika)")
        return
    settings.AMQP_URL = f"amqp://guest:guest@127.0.0.1:{PORT}/%2F?heartbeat=30"
    parameters = pika.URLParameters(settings.AMQP_URL)
    try:
        connection = pika.BlockingConnection(parameters)
    except pika.exceptions.AMQPConnectionError:
        print(f"\nRabbitMQ: not measured, nothing answers on 127.0.0.1:{PORT}")
        return
    logging.getLogger("alkstore_django").setLevel(logging.ERROR)
    many = 300 if quick else 4_000
    with queue(connection.channel()) as channel, announced() as announce:
        payload = {"order": 7}

        def raw(threads: int) -> Callable[[], float]:
            def publish() -> None:
                with pika.BlockingConnection(parameters) as own:
                    confirmed = own.channel()
                    confirmed.confirm_delivery()
                    lasting = pika.BasicProperties(delivery_mode=2)
                    for _ in range(many // threads):
                        body = json.dumps(payload)
                        confirmed.basic_publish(EXCHANGE, KEY, body, lasting, mandatory=True)

            def all_at_once() -> None:
                some = [threading.Thread(target=publish) for _ in range(threads)]
                for each in some:
                    each.start()
                for each in some:
                    each.join()

            return lambda: emptied(channel, rate(many, all_at_once))

        def ours(threads: int, keys: int = 0) -> Callable[[], float]:
            wanted = [number % keys for number in range(many)] if keys else None
            return lambda: emptied(channel, relayed(announce, payload, many, wanted, threads=threads))

        alone = f"the client alone, {THREADS} threads"
        cases = {
            "the client alone, one thread": raw(1),
            alone: raw(THREADS),
            "relayed, one thread": ours(1),
            f"relayed, {THREADS} threads": ours(THREADS),
            f"relayed, {THREADS} threads, 100 keys": ours(THREADS, 100),
        }
        show(f"To RabbitMQ, lasting and confirmed ({many:,} messages)", medians(cases), alone)
    connection.close()
    forget()


def emptied(channel: Any, found: float) -> float:
    channel.queue_purge(QUEUE)
    return found


@contextmanager
def queue(channel: Any) -> Iterator[Any]:
    channel.exchange_declare(EXCHANGE, "direct", durable=True)
    channel.queue_declare(QUEUE, durable=True)
    channel.queue_bind(QUEUE, EXCHANGE, KEY)
    try:
        yield channel
    finally:
        channel.queue_delete(QUEUE)
        channel.exchange_delete(EXCHANGE)


@contextmanager
def announced() -> Iterator[Outbox]:
    """The outbox of the recipe."""
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(recipe("import pika", "@outbox"), names)  # noqa: S102 - the documentation is ours
    try:
        yield names["announce"]
    finally:
        del registry._handlers[names["announce"].queue_name]
