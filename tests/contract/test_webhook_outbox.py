"""An outbox whose events go to a webhook: what the receiver answers decides what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from alkstore_django import registry, results
from alkstore_django.models import DeadJob, Job
from alkstore_django.outbox import Outbox
from alkstore_django.testing import drain
from alkstore_django.webhooks import Webhook
from tests.factories import now
from tests.receiver import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(registry, "_handlers", {})
    server = Receiver()
    yield server
    server.close()


@pytest.fixture
def declare(receiver: Receiver) -> Iterator[Any]:
    made: list[Webhook] = []

    def outbox(path: str, **options: Any) -> Outbox:
        made.append(Webhook(receiver.url + path, allow_private=True, timeout=5))
        return made[-1].outbox("hooks", **options)

    yield outbox
    for each in made:
        each.close()


def test_an_event_arrives_with_its_id(declare: Any, receiver: Receiver) -> None:
    hooks = declare("/here")
    with transaction.atomic():
        event_id = hooks.enqueue({"order": 7})
        assert receiver.got == []
    (ran,) = drain(queue=hooks.queue_name)
    ((path, headers, body),) = receiver.got
    assert (path, headers["webhook-id"], body) == ("/here", event_id, b'{"order":7}')
    assert results.get(int(event_id.split("-")[1])) == {"status": 200, "body": "thanks"}
    assert ran.ended == "succeeded"


def test_what_is_refused_is_dead_at_once(declare: Any) -> None:
    hooks = declare("/status/410")
    hooks.enqueue(1)
    drain(queue=hooks.queue_name)
    letter = DeadJob.objects.get()
    assert letter.attempts == 1 and "answered 410" in letter.last_error


def test_it_comes_again_when_it_was_asked_to(declare: Any) -> None:
    hooks = declare("/status/429/1000", base_backoff=1)
    hooks.enqueue(1)
    drain(queue=hooks.queue_name)
    assert 990 <= Job.objects.get().run_at - now() <= 1001


def test_what_fails_follows_the_backoff_of_the_outbox(declare: Any, receiver: Receiver) -> None:
    hooks = declare("/status/500", base_backoff=0, max_attempts=3)
    hooks.enqueue(1)
    drain(queue=hooks.queue_name)
    assert len(receiver.got) == 3 == DeadJob.objects.get().attempts
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 1
