from __future__ import annotations

from typing import Any

import pytest

from alkstore_django.queues import Queue
from tests import factories
from tests.factories import at, claimed, live, now, within_a_second

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("row", "offset"),
    [
        ({"run_at": at(1)}, 1),
        ({"run_at": at(50), "expires_at": at(60)}, 50),
        ({"run_at": at(0)}, None),
        ({"run_at": at(-5)}, None),
        ({"run_at": at(50), "expires_at": at(0)}, None),
        ({"run_at": at(50), "attempts": 3}, None),
    ],
    ids=str,
)
def test_waiting_rows(row: Any, offset: int | None) -> None:
    def ask() -> None:
        queue = factories.queue()
        live(queue.name, **row)
        assert queue.next_claim_at() == (0 if offset is None else now() + offset)

    within_a_second(ask)


@pytest.mark.parametrize(
    ("row", "offset"),
    [
        ({"claim_expires_at": at(0)}, 1),
        ({"claim_expires_at": at(30)}, 31),
        ({"claim_expires_at": at(-1)}, None),
        ({"claim_expires_at": at(30), "attempts": 3}, None),
        ({"claim_expires_at": at(30), "expires_at": at(0)}, None),
        ({"claim_expires_at": at(30), "expires_at": at(1)}, 31),
        ({"claim_expires_at": None}, None),
    ],
    ids=str,
)
def test_rows_that_are_held(row: Any, offset: int | None) -> None:
    def ask() -> None:
        queue = factories.queue()
        claimed(queue.name, **row)
        assert queue.next_claim_at() == (0 if offset is None else now() + offset)

    within_a_second(ask)


def test_the_earliest_of_all(queue: Queue) -> None:
    claimed(queue.name, claim_expires_at=40_000_000_009)
    live(queue.name, run_at=40_000_000_011)
    live(factories.queue().name, run_at=40_000_000_000)
    assert queue.next_claim_at() == 40_000_000_010
    live(queue.name, run_at=40_000_000_008)
    assert queue.next_claim_at() == 40_000_000_008


def test_an_empty_queue(queue: Queue) -> None:
    assert queue.next_claim_at() == 0
