"""When a worker looks whether its claims are still its own."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import pytest

from alkstore_django import looks
from alkstore_django.models import Claim
from alkstore_django.runtime.leases import Leases
from alkstore_django.runtime.losses import EVERY, YOUNG, Losses

CLAIM = Claim(1, "q", "{}", 0, 0, 1, 3, "w", 0, 0, 0, None)
OTHER = CLAIM._replace(id=2)


class Database:
    """Which claims somebody has taken away, and what was asked for."""

    def __init__(self) -> None:
        self.taken: list[Claim] = []
        self.asked: list[Claim] = []

    def taken_away(self, using: str, worker_id: str, claims: Sequence[Claim]) -> list[Claim]:
        self.asked += claims
        return [claim for claim in claims if claim in self.taken]


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    asked = Database()
    monkeypatch.setattr(looks, "taken_away", asked.taken_away)
    return asked


@pytest.fixture
def leases() -> Leases:
    return Leases("w", lambda claim: 60)


@pytest.fixture
def losses(leases: Leases) -> Losses:
    return Losses("default", "w", leases)


def ago(seconds: float) -> float:
    return time.monotonic() - seconds


def test_without_claims_it_never_looks(losses: Losses, database: Database) -> None:
    assert losses.due_in() == math.inf
    assert losses.look(()) == database.asked == []


def test_a_claim_that_has_just_begun(losses: Losses, leases: Leases, database: Database) -> None:
    assert losses.look(()) == []  # the turn that claims it looks before
    leases.add(CLAIM, 60, since=time.monotonic())
    assert 0 < losses.due_in() <= YOUNG
    assert losses.look(()) == database.asked == []


def test_each_second_while_it_lasts(losses: Losses, leases: Leases, database: Database) -> None:
    leases.add(CLAIM, 60, since=ago(10))
    leases.add(OTHER, 60, since=time.monotonic())
    assert losses.due_in() == 0
    assert losses.look(()) == []
    assert database.asked == [CLAIM]
    assert EVERY - 0.5 < losses.due_in() <= EVERY
    losses.look(())
    assert database.asked == [CLAIM]


def test_where_all_are_young_it_comes_back_soon(losses: Losses, leases: Leases, database: Database) -> None:
    leases.add(CLAIM, 60, since=time.monotonic())
    assert losses.due_in() == 0
    assert losses.look(()) == database.asked == []
    assert 0 < losses.due_in() <= YOUNG


def test_what_was_taken_away(losses: Losses, leases: Leases, database: Database) -> None:
    leases.add(CLAIM, 60, since=ago(10))
    leases.add(OTHER, 60, since=ago(10))
    database.taken = [OTHER]
    assert losses.look(()) == [OTHER]


def test_what_is_settled_anyway_is_not_looked_for(losses: Losses, leases: Leases, database: Database) -> None:
    leases.add(CLAIM, 60, since=ago(10))
    assert losses.look([CLAIM]) == database.asked == []


def test_what_has_locked_its_own_row_cannot_be_taken(
    losses: Losses, leases: Leases, database: Database
) -> None:
    leases.add(CLAIM, 60, since=ago(10))
    leases.locked.add(CLAIM.key)
    assert losses.due_in() == math.inf
    assert losses.look(()) == database.asked == []


def test_trouble_does_not_count_as_a_look(
    losses: Losses, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases.add(CLAIM, 60, since=ago(10))

    def refuse(*arguments: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(looks, "taken_away", refuse)
    with pytest.raises(ConnectionError):
        losses.look(())
    assert losses.due_in() == 0
