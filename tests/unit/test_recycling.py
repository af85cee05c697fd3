from __future__ import annotations

import math
from typing import Any

import pytest

from alkstore_django.runtime import memory
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.recycling import Recycling, spread


def test_limits_are_spread() -> None:
    """Downwards, by up to a tenth: a limit is never passed because of it."""
    drawn = {spread(100) for _ in range(2000)}
    assert drawn == set(range(90, 101))
    assert {spread(9) for _ in range(100)} == {9}
    assert spread(None) is None


def recycling(**limits: Any) -> Recycling:
    return Recycling(Options(using="default", **limits))


def test_without_limits_there_is_nothing_to_wait_for() -> None:
    assert recycling().due_in(busy=False) == math.inf


def test_a_limit_of_time_is_waited_for_once() -> None:
    """Whoever waits for a task afterwards is not woken by it again and again."""
    limit = recycling(max_seconds=1000)
    assert 900 < limit.due_in(busy=True) <= 1000
    limit = recycling(max_idle=0)
    assert limit.due_in(busy=True) == math.inf
    assert limit.look(busy=True, has_worked=True) == ""
    assert limit.due_in(busy=False) == 0
    assert limit.look(busy=False, has_worked=True) == "it had nothing to do for 0 s"
    assert limit.due_in(busy=False) == math.inf
    assert limit.look(busy=True, has_worked=True), "a reason stays"


@pytest.mark.parametrize(
    ("limits", "has_worked", "replaced"),
    [({"max_rss": 1}, True, True), ({"max_rss": 1}, False, False), ({"max_idle": 0}, True, False)],
)
def test_who_wants_a_replacement(limits: dict[str, Any], has_worked: bool, replaced: bool) -> None:
    limit = recycling(**limits)
    limit.look(busy=False, has_worked=has_worked)
    assert limit.wants_replacement is replaced


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    before = memory.resident()
    assert before is not None and before > 10 * 2**20
    ballast = bytearray(b"x" * 64 * 2**20)
    after = memory.resident()
    assert after is not None and after - before > 32 * 2**20
    monkeypatch.setattr(memory, "STATM", "/nowhere")
    peak = memory.resident()
    assert peak is not None and peak >= after - 2**20, "the peak is asked for instead, in bytes, too"
    del ballast
