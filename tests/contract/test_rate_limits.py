"""``try_acquire``: honker's fixed windows, the answer, what is refused, and what sweeps leave alone."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.test import TestCase
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from alkstore_django import rate_limits
from alkstore_django.models import RateLimit, RatePeriod
from alkstore_django.rate_limits import Answer, sweep, sweep_old, try_acquire
from tests import factories

pytestmark = pytest.mark.django_db(databases=["default", "other"])
committed = pytest.mark.django_db(transaction=True, databases=["default", "other"])

DAY = 86_400
LONG = 10**9
"""Seconds: the next window begins in 2033."""


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_periods", {})


def windows(name: str = "r", using: str = "default") -> dict[int, int]:
    """How many calls each window has counted, by its start."""
    rows = RateLimit.objects.using(using).filter(name=name)
    return dict(rows.values_list("window_start", "count"))


def window(age: int, name: str = "r", count: int = 1) -> None:
    """One that began so many seconds ago, counted by whoever."""
    RateLimit.objects.create(name=name, window_start=factories.now() - age, count=count)


def test_so_many_in_a_window() -> None:
    answers = [try_acquire("r", 3, LONG) for _ in range(5)]
    assert [bool(answer) for answer in answers] == [True] * 3 + [False] * 2
    assert [answer.allowed for answer in answers] == [True] * 3 + [False] * 2
    assert [answer.remaining for answer in answers] == [2, 1, 0, 0, 0]
    assert [answer.wait for answer in answers[:3]] == [0.0] * 3 and {answer.limit for answer in answers} == {
        3
    }
    now = factories.now()
    assert windows() == {now // LONG * LONG: 3}, "a refusal is not counted"
    assert all(abs(now // LONG * LONG + LONG - now - answer.wait) < 3 for answer in answers[3:])


def test_windows_begin_at_the_multiples_of_their_length() -> None:
    for per in (1, 7, 60, 3600):
        name = f"r{per}"
        now = factories.within_a_second(lambda: (try_acquire(name, 1000, per), factories.now())[1])  # noqa: B023
        assert now // per * per in windows(name)


def test_the_next_window_begins_anew_and_the_answer_says_when() -> None:
    """The price of fixed windows: at the border there can be two bursts at once."""

    def full() -> Answer:
        RateLimit.objects.all().delete()
        answers = [try_acquire("r", 2, 1) for _ in range(3)]
        assert [bool(answer) for answer in answers] == [True, True, False]
        return answers[-1]

    refused = factories.within_a_second(full)
    assert 0 < refused.wait <= 1
    time.sleep(refused.wait)
    assert try_acquire("r", 2, 1)
    counted = windows()
    assert len(counted) > 1 and max(counted) - min(counted) >= 1


def test_names_and_databases_have_windows_of_their_own() -> None:
    for name, using in (("r", "default"), ("R", "default"), ("r", "other")):
        assert try_acquire(name, 1, LONG, using=using) and not try_acquire(name, 1, LONG, using=using)
    assert try_acquire("s", 1, LONG)


def test_the_limit_is_that_of_the_caller() -> None:
    assert all(try_acquire("r", 5, LONG) for _ in range(5))
    assert not try_acquire("r", 3, LONG) and not try_acquire("r", 5, LONG)
    refused = try_acquire("r", 3, LONG)
    assert refused.remaining == 0
    assert try_acquire("r", 6, LONG) == Answer(allowed=True, limit=6, remaining=0, wait=0.0)


def test_a_window_that_another_program_has_counted_in() -> None:
    start = factories.now() // LONG * LONG
    RateLimit.objects.create(name="r", window_start=start, count=9)
    assert try_acquire("r", 10, LONG).remaining == 0 and not try_acquire("r", 10, LONG)


def test_a_clock_that_was_set_back_grants_nothing_again() -> None:
    """The window of the time that comes again is there, and full."""
    RateLimit.objects.create(name="r", window_start=factories.now() // LONG * LONG, count=2)
    RateLimit.objects.create(name="r", window_start=factories.now() // LONG * LONG + LONG, count=1)
    assert not try_acquire("r", 2, LONG)


def test_async() -> None:
    async def scenario() -> list[bool]:
        return [bool(await rate_limits.atry_acquire("r", 1, LONG)) for _ in range(2)]

    assert async_to_sync(scenario)() == [True, False]
    assert async_to_sync(rate_limits.asweep)(0) == 0


@committed
def test_an_allowed_call_is_one_write(django_assert_num_queries: Any) -> None:
    assert try_acquire("r", 10, LONG)
    most = 1 if connections["default"].vendor != "mysql" else 2
    with django_assert_num_queries(most):
        assert try_acquire("r", 10, LONG)


# -- transactions ---------------------------------------------------------------------------------


@committed
def test_a_rollback_takes_the_call_back() -> None:
    with transaction.atomic():
        assert try_acquire("r", 1, LONG) and not try_acquire("r", 1, LONG)
        transaction.set_rollback(True)
    assert windows() == {} and not RatePeriod.objects.exists()
    with transaction.atomic():
        assert try_acquire("r", 1, LONG)
    assert not try_acquire("r", 1, LONG) and RatePeriod.objects.get().seconds == LONG


def test_a_refusal_leaves_the_transaction_as_it_was() -> None:
    assert try_acquire("r", 1, LONG)
    with transaction.atomic():
        window(5, "mine")
        assert not try_acquire("r", 1, LONG)
    assert windows("mine")


class InTestCase(TestCase):
    def test_as_in_production(self) -> None:
        answers = [bool(try_acquire("r", 2, LONG)) for _ in range(3)]
        self.assertEqual(answers, [True, True, False])
        self.assertEqual(sweep(0), 0)
        self.assertFalse(try_acquire("r", 2, LONG))


# -- sweeps ---------------------------------------------------------------------------------------


def test_old_windows_are_deleted() -> None:
    assert try_acquire("r", 5, 60)
    window(60 + 3000)
    assert sweep_old("default") == 0
    window(60 + 3603)
    window(10 * DAY)
    assert sweep_old("default") == 2 and sweep_old("default") == 0
    assert len(windows()) == 2 and not sweep(timedelta(days=1))
    assert sweep(120) == 1 and len(windows()) == 1


def test_a_running_window_is_never_reset() -> None:
    """Nor one whose name has longer windows than the one who sweeps knows of."""
    try_acquire("r", 1, 366 * DAY)
    assert sweep(0) == sweep_old("default") == 0 and not try_acquire("r", 1, 366 * DAY)
    window(300 * DAY)
    assert sweep(0) == sweep_old("default") == 0
    window(367 * DAY)
    assert sweep_old("default") == 1


def test_the_longest_length_of_a_name_counts() -> None:
    for per in (60, 10 * DAY, 3600):
        try_acquire("r", 1000, per)
    assert RatePeriod.objects.get().seconds == 10 * DAY
    window(9 * DAY)
    window(11 * DAY)
    assert sweep(0) == 1


def test_what_only_other_programs_count_in() -> None:
    """Nobody knows when it ends: it is left alone, and by hand taken for as long as the longest we know."""
    for age in (100, 5 * DAY, 400 * DAY):
        window(age, "theirs")
    assert sweep_old("default") == 0 and len(windows("theirs")) == 3
    try_acquire("r", 1, DAY)
    assert sweep(300) == 2 and len(windows("theirs")) == 1


def test_honkers_rule_is_strict() -> None:
    def swept(age: int) -> int:
        RateLimit.objects.all().delete()
        window(age, "theirs")
        return sweep(100)

    assert factories.within_a_second(lambda: swept(100)) == 0
    assert swept(101) == 1


def test_names_that_are_used_no_more_are_forgotten() -> None:
    try_acquire("r", 1, 60)
    try_acquire("s", 1, 60)
    RateLimit.objects.filter(name="r").delete()
    assert sweep_old("default") == 1
    assert list(RatePeriod.objects.values_list("name", flat=True)) == ["s"]
    try_acquire("r", 1, 60)
    assert RatePeriod.objects.filter(name="r").exists(), "with its next window it is noted again"


def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "BATCH", 2)
    try_acquire("r", 1, 60)
    for number in range(5):
        window(DAY + 100 * number)
    assert [sweep_old("default") for _ in range(4)] == [2, 2, 1, 0]
    for number in range(5):
        window(DAY + 100 * number, "theirs")
    assert sweep(DAY // 2) == 5


@committed
def test_a_length_is_noted_once(django_assert_num_queries: Any) -> None:
    for name in ("r", "s"):
        try_acquire(name, 10, LONG)
    with CaptureQueriesContext(connections["default"]) as captured:
        for _ in range(3):
            assert try_acquire("r", 10, LONG)
    assert not [query for query in captured.captured_queries if "rate_periods" in query["sql"]]


@committed
def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "REMEMBERED", 3)
    for number in range(10):
        try_acquire(f"r{number}", 1, LONG)
    assert len(rate_limits._periods) <= 3 and RatePeriod.objects.count() == 10


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"limit": 0}, ValueError, "limit must be from 1 to"),
        ({"limit": -1}, ValueError, "limit must be from 1 to"),
        ({"limit": 1.5}, ValueError, "limit must be a whole number"),
        ({"limit": math.nan}, ValueError, "limit must be a whole number"),
        ({"limit": None}, TypeError, "limit must be a whole number, not None"),
        ({"limit": True}, TypeError, "limit must be a whole number, not True"),
        ({"per": 0}, ValueError, "per must be from 1 to"),
        ({"per": -60}, ValueError, "per must be from 1 to"),
        ({"per": 0.5}, ValueError, "per must be from 1 to"),
        ({"per": math.nan}, ValueError, "per must be a finite number of seconds"),
        ({"per": math.inf}, ValueError, "per must be a finite number of seconds"),
        ({"per": None}, TypeError, "per must be seconds or a timedelta, not None"),
        ({"per": "60"}, TypeError, "per must be seconds or a timedelta"),
        ({"name": ""}, ValueError, "A rate limit name has 1 to 191 characters, this has 0"),
        ({"name": "x" * 192}, ValueError, "A rate limit name has 1 to 191 characters"),
        ({"name": None}, TypeError, "A rate limit name must be a string"),
        ({"name": "a\n"}, ValueError, "begins or ends with white space"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_at_the_call(changes: Any, error: type[Exception], message: str) -> None:
    with CaptureQueriesContext(connections["default"]) as captured, pytest.raises(error, match=message):
        try_acquire(**{"name": "r", "limit": 1, "per": 60, **changes})
    assert not captured.captured_queries


def test_a_bad_age() -> None:
    for bad in (-1, math.nan, None, "1h"):
        with pytest.raises((TypeError, ValueError), match="older_than must be"):
            sweep(bad)  # type: ignore[arg-type]


def test_fractions_are_rounded_up() -> None:
    try_acquire("r", 2.0, timedelta(seconds=59.5))  # type: ignore[arg-type]
    assert RatePeriod.objects.get().seconds == 60


# -- a model --------------------------------------------------------------------------------------

CALLS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 4), st.sampled_from([LONG, 2 * LONG])), max_size=12
)


@settings(max_examples=15, deadline=None)
@given(CALLS)
def test_as_a_model_in_plain_python(calls: list[tuple[str, int, int]]) -> None:
    RateLimit.objects.all().delete()
    counts: dict[tuple[str, int], int] = {}
    for name, limit, per in calls:
        key = name, factories.now() // per * per
        expected = counts.get(key, 0) < limit
        counts[key] = counts.get(key, 0) + expected
        answer = try_acquire(name, limit, per)
        assert answer.allowed == expected and answer.remaining == max(0, limit - counts[key])
    assert {key: count for key, count in counts.items() if count} == {
        (row.name, row.window_start): row.count for row in RateLimit.objects.all()
    }
