"""Bad input raises at the call, before any SQL: nothing is written, and the caller's transaction goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.http import HttpRequest
from django.test.utils import CaptureQueriesContext
from django.utils.translation import gettext_lazy

from alkstore_django import queues
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from tests import factories

pytestmark = pytest.mark.django_db

NAN, INF = float("nan"), float("inf")


@dataclass
class Point:
    x: int = 1


PAYLOADS = [
    (NAN, ValueError, "is nan"),
    (INF, ValueError, "is inf"),
    ({1: 1, "1": 2}, ValueError, "two keys that are '1'"),
    ({None: 1, "null": 2}, ValueError, "two keys that are 'null'"),
    ({True: 1, "true": 2}, ValueError, "two keys that are 'true'"),
    ({(1, 2): 1}, TypeError, "'tuple'"),
    (datetime(2026, 1, 1, tzinfo=UTC), TypeError, "datetime.datetime"),
    (datetime(2026, 1, 1), TypeError, "datetime.datetime"),
    (date(2026, 1, 1), TypeError, "datetime.date"),
    (timedelta(1), TypeError, "datetime.timedelta"),
    (Decimal("1.10"), TypeError, "decimal.Decimal"),
    (UUID(int=1), TypeError, "uuid.UUID"),
    ({1, 2}, TypeError, "set"),
    (frozenset(), TypeError, "frozenset"),
    (b"bytes", TypeError, "bytes"),
    (bytearray(b"b"), TypeError, "bytearray"),
    (memoryview(b"m"), TypeError, "memoryview"),
    (1j, TypeError, "complex"),
    (range(3), TypeError, "range"),
    (iter([1]), TypeError, "list_iterator"),
    (Path("file"), TypeError, "Path"),
    (Point(), TypeError, "Point"),
    (gettext_lazy("Yes"), TypeError, "proxy"),
    (User(), TypeError, "User.*pass its primary key"),
    (User.objects.none(), TypeError, "QuerySet"),
    (HttpRequest(), TypeError, "HttpRequest"),
    (lambda: 1, TypeError, "function"),
    (object(), TypeError, "object"),
]
OPTIONS = [
    ({"max_attempts": 0}, ValueError),
    ({"max_attempts": -1}, ValueError),
    ({"max_attempts": 2**40}, ValueError),
    ({"max_attempts": True}, TypeError),
    ({"max_attempts": "3"}, TypeError),
    ({"priority": 2**63}, ValueError),
    ({"priority": 2**31}, ValueError),
    ({"priority": -(2**31) - 1}, ValueError),
    ({"priority": NAN}, ValueError),
    ({"priority": 0.5}, ValueError),
    ({"priority": True}, TypeError),
    ({"priority": None}, TypeError),
    ({"delay": -1}, ValueError),
    ({"delay": 10**30}, ValueError),
    ({"delay": NAN}, ValueError),
    ({"delay": INF}, ValueError),
    ({"delay": True}, TypeError),
    ({"delay": "60"}, TypeError),
    ({"delay": timedelta(days=-1)}, ValueError),
    ({"delay": timedelta.max}, ValueError),
    ({"expires": -1}, ValueError),
    ({"expires": NAN}, ValueError),
    ({"expires": 2**63}, ValueError),
    ({"expires": False}, TypeError),
    ({"run_at": datetime(2026, 1, 1)}, ValueError),
    ({"run_at": datetime.max}, ValueError),
    ({"run_at": datetime.max.replace(tzinfo=UTC)}, ValueError),
    ({"run_at": 1_790_000_000_000}, ValueError),
    ({"run_at": NAN}, ValueError),
    ({"run_at": -INF}, ValueError),
    ({"run_at": -1}, ValueError),
    ({"run_at": True}, TypeError),
    ({"run_at": datetime.min.replace(tzinfo=UTC)}, ValueError),
    ({"run_at": 253_402_300_800}, ValueError),
    ({"run_at": 10**400}, ValueError),
    ({"run_at": date(2026, 1, 1)}, TypeError),
    ({"run_at": Decimal(1)}, TypeError),
    ({"run_at": timedelta(1)}, TypeError),
    ({"run_at": "2026-01-01"}, TypeError),
    ({"run_at": 1, "delay": 1}, ValueError),
    ({"run_at": 1, "delay": 0}, ValueError),
]


def refused(error: type[Exception], call: Callable[[], Any], *words: str) -> None:
    """The call raises without a statement, and leaves the transaction of the caller usable."""
    before = Job.objects.count()
    with CaptureQueriesContext(connection) as captured, pytest.raises(error) as raised:
        call()
    assert captured.captured_queries == []
    assert [word for word in words if not re.search(word, str(raised.value))] == []
    with transaction.atomic():
        with pytest.raises(error):
            call()
        assert Job.objects.count() == before


@pytest.mark.parametrize(
    ("payload", "error", "words"), PAYLOADS, ids=[f"{type(row[0]).__name__} {row[2]}" for row in PAYLOADS]
)
def test_payloads_are_named_with_their_path(
    queue: Queue, payload: Any, error: type[Exception], words: str
) -> None:
    in_it = r"payload\['in'\]\[1\]"
    refused(error, lambda: queue.enqueue({"in": [0, payload]}), in_it, words)
    refused(error, lambda: queue.enqueue_many([1, payload]), r"payloads\[1\]", words)


@pytest.mark.parametrize(("options", "error"), OPTIONS, ids=str)
def test_options(queue: Queue, options: Any, error: type[Exception]) -> None:
    names = [rf"\b{name}\b" for name in options]
    refused(error, lambda: queue.enqueue(1, **options), *names)
    refused(error, lambda: queue.enqueue_many([1], **options), *names)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": ""}, ValueError),
        ({"name": "a\x00"}, ValueError),
        ({"name": "x" * 256}, ValueError),
        ({"name": "job "}, ValueError),
        ({"name": None}, TypeError),
        ({"visibility_timeout": 0}, ValueError),
        ({"visibility_timeout": -1}, ValueError),
        ({"visibility_timeout": True}, TypeError),
        ({"visibility_timeout": None}, TypeError),
        ({"max_attempts": 0}, ValueError),
        ({"max_attempts": None}, TypeError),
    ],
    ids=str,
)
def test_queues(options: Any, error: type[Exception]) -> None:
    refused(error, lambda: Queue(**{"name": "q", **options}))


@pytest.mark.parametrize(
    ("n", "error"),
    [(-1, ValueError), (1.5, ValueError), (True, TypeError), ("1", TypeError), (NAN, ValueError)],
)
def test_claims(queue: Queue, n: Any, error: type[Exception]) -> None:
    refused(error, lambda: queue.claim_batch("w", n))


@pytest.mark.parametrize(
    ("worker", "error"),
    [("", ValueError), ("w ", ValueError), ("w\x00", ValueError), (None, TypeError), (1, TypeError)],
)
def test_workers(queue: Queue, worker: Any, error: type[Exception]) -> None:
    refused(error, lambda: queue.claim_one(worker))
    refused(error, lambda: queue.claim_batch(worker, 1))


def test_durations_of_a_claim(queue: Queue) -> None:
    queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None
    for value, error in ((-1, ValueError), (NAN, ValueError), (10**30, ValueError), (True, TypeError)):
        refused(error, lambda value=value: queue.retry(job, value, ""))  # type: ignore[misc]
        refused(error, lambda value=value: queue.heartbeat(job, value))  # type: ignore[misc]
    refused(ValueError, lambda: queue.heartbeat(job, 0))
    assert queue.ack(job)


@pytest.mark.parametrize(
    "job_id", [0, -1, -(2**63), 2**63 - 1, 2**63, -(2**63) - 1, 10**30, True, None, "1", 1.0, b"1", [1], NAN]
)
def test_ids_that_no_job_has(queue: Queue, job_id: Any) -> None:
    for look in (queue.cancel, queues.cancel):
        assert look(job_id) is False
    for look in (queue.get_job, queues.get_job):
        assert look(job_id) is None
    assert queue.requeue([job_id]) == 0
    assert queues.requeue([job_id]) == {}


def test_an_alias_that_does_not_exist() -> None:
    from django.utils.connection import ConnectionDoesNotExist

    with pytest.raises(ConnectionDoesNotExist, match="nowhere"):
        factories.queue(using="nowhere").enqueue(1)
