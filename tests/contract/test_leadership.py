"""Who leads: one scheduler of all, ours or another program's."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import OperationalError, connection

from alkstore_django import leadership, schedules
from alkstore_django.leadership import LOCK, RENEWAL, Leadership, leader
from alkstore_django.models import Lock, ScheduledTask, ScheduleOptions
from tests import factories
from tests.contract.scheduling import BASE, at, db_now, foreign, made, set_next

SCHEDULES = ScheduledTask._meta.db_table

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0
        self._monotonic = time.monotonic

    def monotonic(self) -> float:
        return self._monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(leadership, "time", clock)
    return clock


def candidate(name: str = "a") -> Leadership:
    return Leadership("default", f"alkstore-{name}")


def hold_as(owner: str, seconds: int) -> None:
    Lock.objects.update_or_create(
        name=LOCK, defaults={"owner": owner, "expires_at": factories.now() + seconds}
    )


def test_one_leads_and_the_other_stands_by(caplog: Any) -> None:
    caplog.set_level("INFO", "alkstore_django")
    first, second = candidate("a"), candidate("b")
    assert leader("default") is None
    assert first.hold() and first.hold() and not second.hold() and not second.hold()
    assert caplog.text.count("stands by: alkstore-a leads") == 1
    found = leader("default")
    assert found is not None and found.owner == "alkstore-a" and found.is_ours
    second.release()
    assert first.hold()
    first.release()
    assert leader("default") is None and second.hold()


def test_a_lock_that_was_taken_away_is_noticed_by_who_asks(caplog: Any) -> None:
    first = candidate()
    assert first.hold() and first.hold(surely=True)
    hold_as("another", 60)
    assert first.hold()
    assert not first.hold(surely=True) and "does not lead any more" in caplog.text


def test_it_is_renewed_every_20_seconds(clock: Clock, django_assert_num_queries: Any) -> None:
    first = candidate()
    assert first.hold()
    hold_as(first.owner, 30)
    with django_assert_num_queries(0):
        assert first.hold()
    clock.ahead = RENEWAL
    assert first.hold()
    assert Lock.objects.get(pk=LOCK).expires_at > factories.now() + 50


def test_a_lost_lead_is_noticed(clock: Clock, caplog: Any) -> None:
    """As after a standstill: the lock has ended, and another has taken it."""
    first, second = candidate("a"), candidate("b")
    assert first.hold()
    hold_as(first.owner, -1)
    assert second.hold()
    clock.ahead = RENEWAL
    assert not first.hold() and "does not lead any more" in caplog.text
    assert not first.hold() and second.hold()


def test_an_end_that_nobody_used(clock: Clock) -> None:
    first = candidate()
    assert first.hold()
    hold_as(first.owner, -1)
    clock.ahead = RENEWAL
    assert not first.hold()
    assert first.hold()


@pytest.mark.parametrize("predecessor", ["alkstore-b", "3f2a"])
def test_what_another_program_has_counted_begins_anew(predecessor: str) -> None:
    """Only what honker does not read as we do."""
    fixed = "30 2 * * *"  # honker runs it in the second pass of the hour that repeats
    made("ours", fixed, timezone="Europe/Berlin")
    made("portable", "30 2 * * *", timezone="UTC")
    foreign("theirs", fixed)
    assert not at("ours").portable and at("portable").portable
    hold_as(predecessor, 60)
    first = candidate()
    assert not first.hold()
    hold_as(predecessor, 0)
    assert first.hold()
    assert at("portable").next_fire_at == BASE and at("theirs").next_fire_at == BASE
    anew = at("ours").next_fire_at
    assert anew == BASE if predecessor == "alkstore-b" else anew is not None and anew > db_now()


def test_it_is_not_counted_from_before_the_last_fire() -> None:
    made("ours", "30 2 * * *", timezone="Europe/Berlin")
    cron = at("ours").cron
    assert cron is not None
    ahead = cron.upcoming(3)[-1]
    set_next("ours", ahead)
    schedules.tick(ahead)
    hold_as("3f2a", 0)
    assert candidate().hold()
    assert at("ours").next_fire_at == cron.next_after(ahead)


@pytest.mark.parametrize("reached", ["SELECT", "UPDATE"])
def test_a_takeover_that_was_cut_short_is_done_the_next_time(reached: str) -> None:
    made("ours", "30 2 * * *", timezone="Europe/Berlin")
    hold_as("3f2a", 0)
    first = candidate()

    def away(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(reached) and SCHEDULES in sql:
            raise OperationalError("away")
        return execute(sql, *rest)

    with connection.execute_wrapper(away), pytest.raises(OperationalError):
        first.hold()
    assert first.is_held and at("ours").next_fire_at == BASE
    first.forget()
    assert first.hold(surely=True)
    anew = at("ours").next_fire_at
    assert anew is not None and anew > db_now()
    set_next("ours", BASE)
    assert first.hold(surely=True) and at("ours").next_fire_at == BASE, "once"


def test_a_last_fire_that_no_calendar_has_does_not_keep_anybody_from_leading() -> None:
    made("ours", "30 2 * * *", timezone="Europe/Berlin")
    ScheduleOptions.objects.update(last_fire_at=2**62)
    hold_as("3f2a", 0)
    assert candidate().hold()
