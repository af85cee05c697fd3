"""What an outcome leaves behind, whatever is in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from alkstore_django import turns
from alkstore_django.failures import from_exception
from alkstore_django.models import Result
from alkstore_django.queues import Queue
from alkstore_django.turns import Outcome, Turn, Verdict
from tests import factories
from tests.contract.clerk import claims, settle, wish
from tests.factories import at, columns, history, where, within_a_second

pytestmark = pytest.mark.django_db


@pytest.mark.only("postgresql", "mysql")  # SQLite stores anything
def test_one_that_cannot_be_stored_holds_up_nobody(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    bad, good = claims(queue, 2)
    waiting = queue.enqueue("next")
    outcomes = [
        Outcome(bad, Verdict.ACK, value="1", ttl=2**63 - 1),  # with the clock more than a column holds
        Outcome(good, Verdict.ACK, value="1"),
    ]
    assert turns.take("default", "w", outcomes, [wish(queue)], 5) == Turn()  # the next turn claims again
    assert (where(bad.id), where(good.id), where(waiting)) == ("dead", "run", "live")
    assert f"The outcome of job id={bad.id} could not be stored" in caplog.text
    assert history(bad.id) == [("failed", 1, 1)]
    assert [claim.id for claim in turns.take("default", "w", [], [wish(queue)], 5).claims] == [waiting]


@pytest.mark.django_db(transaction=True)  # MariaDB hangs up
def test_one_that_is_too_big_holds_up_nobody(queue: Queue) -> None:
    big, good = claims(queue, 2)
    value = json.dumps("x" * 17_000_000)
    assert settle(Outcome(big, Verdict.ACK, value=value), Outcome(good, Verdict.ACK, value="1")) == []
    assert (where(big.id), where(good.id)) == ("dead" if connection.vendor == "mysql" else "run", "run")


def test_many_that_are_big(queue: Queue) -> None:
    """Payloads and results of one turn are more than MariaDB takes in one statement."""
    found = claims(queue, 30, "x" * 700_000)
    value = json.dumps("y" * 700_000)
    assert settle(*(Outcome(claim, Verdict.ACK, value=value) for claim in found)) == []
    assert {where(claim.id) for claim in found} == {"run"}


@pytest.mark.parametrize("verdict", [Verdict.RETRY, Verdict.DEAD, Verdict.DISCARD])
@pytest.mark.parametrize(("module", "name"), [("m", "E" * 500), ("m\x00", "E"), ("m\ud800", "E")])
def test_an_exception_of_any_name(queue: Queue, module: str, name: str, verdict: Verdict) -> None:
    error = type(name, (Exception,), {"__module__": module})("no\x00\ud800")
    (held,) = claims(queue, 1)
    assert settle(Outcome(held, verdict, failure=from_exception(error))) == []
    assert history(held.id) == [("failed", 1, 1)]


def test_a_value_of_any_size(queue: Queue) -> None:
    (held,) = claims(queue, 1)
    text = json.dumps("🙂\x00\ud800" * 50_000)
    assert settle(Outcome(held, Verdict.ACK, value=text)) == []
    assert Result.objects.value(held.id) in (text, text.encode())


def test_a_result_replaces_an_older_one_of_that_id(queue: Queue) -> None:
    (held,) = claims(queue, 1)
    factories.result(held.id, '"older"', created_at=5, expires_at=6)
    assert settle(Outcome(held, Verdict.ACK, value='"newer"')) == []
    assert columns(held.id, "value", "created_at", "expires_at", model=Result) == ('"newer"', 5, None)


@pytest.mark.parametrize(
    ("ends", "found"), [(at(1), True), (at(0), False), (at(-1), False), (None, True)], ids=str
)
def test_how_long_a_result_is_there(ends: Any, found: bool) -> None:
    def scenario() -> None:
        job_id = factories.result(next(free_ids), "1", expires_at=ends)
        assert (Result.objects.value(job_id) is not None) == found

    within_a_second(scenario)


free_ids = iter(range(2**41, 2**42))
