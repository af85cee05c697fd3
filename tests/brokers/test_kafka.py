"""Kafka: brokers inside the client's library, which speak the protocol and keep nothing."""

from __future__ import annotations

import json

import pytest

from alkstore_django.models import Job
from alkstore_django.outbox import Outbox
from tests.brokers.conftest import Serve, is_settled
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

BROKERS = {"test.mock.num.brokers": 3}


def test_events_are_reported_as_taken(serve: Serve, orders: Outbox) -> None:
    orders.enqueue_many([{"n": n} for n in range(40)], keys=[n % 4 for n in range(40)])
    orders.enqueue({"n": 40})
    worker = serve("confluent_kafka", kafka=json.dumps(BROKERS))
    wait_until(is_settled, worker, what="all is delivered")
    assert worker.count("Traceback") == 0


def test_what_the_broker_does_not_take_is_tried_again(serve: Serve, orders: Outbox) -> None:
    """Larger than the client admits: its error, and not silence."""
    orders.enqueue({"text": "x" * 5_000})
    worker = serve("confluent_kafka", kafka=json.dumps({**BROKERS, "message.max.bytes": 1_000}))
    worker.wait_for("MSG_SIZE_TOO_LARGE")
    assert Job.objects.get().attempts == 1
