from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkstore_django.backoff import Backoff, as_backoff
from alkstore_django.values import LONGEST

numbers = st.floats(min_value=0, max_value=LONGEST) | st.integers(min_value=0, max_value=LONGEST)


@given(
    base=numbers,
    factor=numbers,
    cap=numbers,
    jitter=st.floats(0, 1),
    attempt=st.integers(-1, 2**63) | st.integers(1, 2000),
    seed=st.integers(),
)
def test_a_delay_is_always_a_whole_number_from_0_to_the_cap(
    base: float, factor: float, cap: float, jitter: float, attempt: int, seed: int
) -> None:
    delay = Backoff(base=base, factor=factor, cap=cap, jitter=jitter).delay(attempt, random.Random(seed))
    assert type(delay) is int
    assert 0 <= delay <= cap


def test_the_defaults() -> None:
    plain = Backoff(jitter=0)
    assert [plain.delay(attempt) for attempt in (1, 2, 3, 8, 9, 2000)] == [15, 30, 60, 1920, 3600, 3600]
    spread = {Backoff().delay(3) for _ in range(500)}
    assert min(spread) >= 54
    assert max(spread) <= 66
    assert len(spread) > 5
    assert max(Backoff().delay(50) for _ in range(100)) <= 3600


@pytest.mark.parametrize("attempt", [*range(1, 2001, 97), 10**6, 2**63, 10**400])
def test_it_cannot_overflow(attempt: int) -> None:
    assert 0 <= Backoff(base=5, factor=5).delay(attempt) <= 3600
    assert Backoff(base=LONGEST, factor=LONGEST, jitter=0).delay(attempt) == 3600


@pytest.mark.parametrize("name", ["base", "factor", "cap", "jitter"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -1, -0.1, 1e308, 10**400, True])
def test_numbers_that_no_delay_can_have(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"backoff {name}"):
        Backoff(**{name: value})


@pytest.mark.parametrize("value", ["15", None, timedelta(1)])
def test_values_of_a_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError):
        Backoff(base=value)


def test_a_jitter_is_a_share() -> None:
    assert Backoff(jitter=1).delay(1) >= 0
    with pytest.raises(ValueError, match="jitter is a share from 0 to 1"):
        Backoff(jitter=1.1)


def test_a_cap_fits_the_column_that_it_is_added_to() -> None:
    assert Backoff(base=LONGEST, cap=LONGEST, jitter=0).delay(9) == LONGEST
    with pytest.raises(ValueError, match="backoff cap"):
        Backoff(cap=LONGEST + 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Backoff()),
        (Backoff(base=3), Backoff(base=3)),
        (2, Backoff(base=2)),
        (timedelta(minutes=1), Backoff(base=60)),
        (7200, Backoff(base=7200, cap=7200)),
        (0, Backoff(base=0)),
    ],
)
def test_what_a_task_may_be_given(value: Any, expected: Backoff) -> None:
    assert as_backoff(value) == expected


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), timedelta.max])
def test_bad_bases(value: Any) -> None:
    with pytest.raises(ValueError, match="backoff"):
        as_backoff(value)


@pytest.mark.parametrize("value", [True, "15", (1, 2)])
def test_bases_of_a_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match="backoff"):
        as_backoff(value)
