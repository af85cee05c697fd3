"""Pauses as a worker knows them: when it looks, and what it leaves out."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from alkstore_django.queues import Queue
from alkstore_django.runtime import pausing
from alkstore_django.runtime.pausing import EVERY, Pauses
from alkstore_django.runtime.plan import Plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan() -> Plan:
    return Plan("default", ["mail", "bulk"], None)


def wished(plan: Plan) -> list[str]:
    return [wish.queue for wish in plan.wishes(1)]


def test_what_is_paused_is_not_wished_for(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pausing, "EVERY", 0.0)
    pauses = Pauses("default", plan)
    Queue("mail").pause()
    Queue("elsewhere").pause()
    assert pauses.look(), "a pause of a served queue began"
    assert wished(plan) == ["bulk"]
    assert not pauses.look()
    Queue("bulk").pause()
    assert pauses.look()
    assert wished(plan) == []
    Queue("mail").resume()
    assert not pauses.look()
    assert wished(plan) == ["mail"]
    Queue("bulk").resume()
    assert not pauses.look()
    assert wished(plan) == ["mail", "bulk"]


def test_it_looks_every_half_second_at_most(
    plan: Plan, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(pausing, "time", clock)
    pauses = Pauses("default", plan)
    with django_assert_num_queries(1):
        for _ in range(10):
            pauses.look()
    clock.monotonic = lambda: 100.0 + EVERY
    with django_assert_num_queries(1):
        pauses.look()


def test_a_worker_waits_for_the_end_of_a_pause_only_while_there_is_one(plan: Plan) -> None:
    Queue("elsewhere").pause()
    pauses = Pauses("default", plan)
    pauses.look()
    assert pauses.next_look() == math.inf
    Queue("mail").pause()
    pauses = Pauses("default", plan)
    pauses.look()
    assert 0 < pauses.next_look() <= EVERY
