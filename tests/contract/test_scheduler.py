"""What one pass of a scheduler does, and what it does when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from alkstore_django import firing, schedules
from alkstore_django.leadership import LOCK, RENEWAL, TTL, leader
from alkstore_django.models import Lock, ScheduleOptions
from alkstore_django.runtime import scheduler as runtime
from alkstore_django.runtime.scheduler import Scheduler
from tests import factories
from tests.contract.scheduling import BASE, at, db_now, jobs, made, set_next

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    """In the thread of the test."""
    made = Scheduler("default")
    yield made
    made.leadership.release()


def passes(scheduler: Scheduler, times: int = 1) -> list[float]:
    return [scheduler._pass_or_wait() for _ in range(times)]


def test_the_numbers_go_together() -> None:
    assert runtime.INTERVAL < 5 < RENEWAL < TTL / 2


def test_without_schedules_it_only_asks_one_question(scheduler: Scheduler) -> None:
    passes(scheduler)
    with CaptureQueriesContext(connection) as queries:
        assert passes(scheduler) == [runtime.INTERVAL]
    assert len(queries) == 1 and leader("default") is None


def test_it_sleeps_until_the_next_boundary_and_never_long(scheduler: Scheduler) -> None:
    """So that it finds out when the clock of the database is set, and what others have changed."""
    made("far", "@every 1h", due=db_now() + timedelta(days=400))
    passes(scheduler)
    with CaptureQueriesContext(connection) as queries:
        assert passes(scheduler) == [runtime.INTERVAL]
    assert len(queries) == 1
    made("near", "@every 1h", due=db_now() + timedelta(seconds=3))
    before = schedules.due_in()
    (wait,) = passes(scheduler)
    after = schedules.due_in()
    assert before is not None and after is not None and after <= wait <= before <= 3


def test_a_clock_that_jumps(scheduler: Scheduler) -> None:
    """Forward is a time that was missed; back is a time that comes again, and fires nothing twice."""
    made("s", "@every 1m", due=db_now() - timedelta(days=1))  # the last is now, and the next in a minute
    passes(scheduler, 2)
    assert (jobs(), at("s").skipped) == (1, 1440)
    set_next("s", db_now() + timedelta(days=1))  # as it looks when the clock was set back by a day
    assert passes(scheduler, 2) == [runtime.INTERVAL] * 2 and jobs() == 1


def test_it_stands_by(scheduler: Scheduler) -> None:
    made(due=db_now())
    Lock.objects.create(name=LOCK, owner="another", expires_at=factories.now() + 60)
    assert passes(scheduler, 2) == [runtime.INTERVAL] * 2
    assert jobs() == 0
    Lock.objects.update(expires_at=factories.now())
    passes(scheduler)
    assert jobs() == 1


def test_it_does_not_fire_when_its_lock_was_taken_away(scheduler: Scheduler) -> None:
    made(due=db_now())
    passes(scheduler)
    assert jobs() == 1
    Lock.objects.update(owner="another")
    set_next("s", db_now())
    passes(scheduler)
    assert jobs() == 1


def test_it_heals_what_it_can_when_it_begins_to_lead(scheduler: Scheduler) -> None:
    made(expression="@daily")
    ScheduleOptions.objects.update(timezone="Mars/Base")
    schedules.tick(BASE)
    assert at().problem
    ScheduleOptions.objects.update(timezone="UTC")
    passes(scheduler)
    assert at().problem is None and at().next_fire_at is not None and jobs() == 0


def test_a_heal_that_was_cut_short_is_done_in_the_next_pass(scheduler: Scheduler) -> None:
    passes(scheduler)
    made("far", "@every 1h", due=db_now() + timedelta(days=400))
    made()
    ScheduleOptions.objects.filter(pk="s").update(timezone="Mars/Base")
    schedules.tick(BASE)
    ScheduleOptions.objects.filter(pk="s").update(timezone="UTC")

    def away(execute: Any, sql: str, *rest: Any) -> Any:
        if "o.broken = s.cron_expr" in sql:
            raise OperationalError("away")
        return execute(sql, *rest)

    with connection.execute_wrapper(away):
        passes(scheduler)
    assert at().problem
    passes(scheduler)
    assert at().problem is None


def test_between_batches_it_asks_whether_it_leads(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing.fire_due, "__defaults__", (None, 2))
    for number in range(6):
        made(f"s{number}", "@every 1h", due=db_now())
    hold, left = scheduler.leadership.hold, [True, True, False]
    monkeypatch.setattr(scheduler.leadership, "hold", lambda **surely: hold(**surely) and left.pop(0))
    passes(scheduler)
    assert jobs() == 4


def test_an_error_that_should_not_happen_does_not_end_it(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    made(due=db_now())
    monkeypatch.setattr(firing, "_texts", lambda *args: 1 / 0)
    assert passes(scheduler) == [runtime.AFTER_BUG]
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    passes(scheduler)
    assert jobs() == 1


def test_an_outage_is_told_once(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    caplog.set_level("INFO", "alkstore_django")
    made(due=db_now())

    def away(**kwargs: Any) -> float:
        raise OperationalError("away")

    monkeypatch.setattr(schedules, "due_in", away)
    waits = passes(scheduler, 5)
    assert waits[0] < 0.2 < waits[-1] <= 6
    monkeypatch.undo()
    passes(scheduler)
    assert jobs() == 1
    assert caplog.text.count("is in trouble") == caplog.text.count("is back") == 1


def test_what_can_never_be_fired_is_no_busy_loop(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(due=db_now())
    monkeypatch.setattr(firing, "_fire", lambda *args: False)
    waits = passes(scheduler, 10)
    assert waits == sorted(waits) and waits[0] > 0 and waits[-1] == runtime.INTERVAL
