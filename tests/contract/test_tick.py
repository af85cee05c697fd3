"""What a tick fires, skips and stops, on every database."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import queues, schedules
from alkstore_django.backends import AlkstoreBackend
from alkstore_django.compat import TaskResultStatus, task_backends, task_enqueued
from alkstore_django.cron import Cron
from alkstore_django.models import Job, ScheduledJob, ScheduledTask, ScheduleOptions
from alkstore_django.tasks import task
from tests import factories
from tests.app import contextual, tasks
from tests.contract.scheduling import BASE, at, db_now, foreign, jobs, made, set_next, told_of_skipped
from tests.in_process import work
from tests.processes import Journal, journal

__all__ = ["journal"]

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)


@task(unique=True)
def only_one(number: int) -> None:
    pass


def test_a_boundary_becomes_a_job() -> None:
    made(args=(1,), kwargs={"b": 2}, task=tasks.add, queue="q", priority=4, expires=90, max_attempts=7)
    assert schedules.tick(BASE - timedelta(seconds=1)) == []
    (fired,) = schedules.tick(BASE)
    assert (fired.schedule, fired.queue, fired.scheduled_for) == ("s", "q", BASE)
    job = Job.objects.get(pk=fired.job_id)
    assert (job.queue, job.priority, job.max_attempts) == ("q", 4, 7)
    assert job.expires_at == job.created_at + 90 and job.run_at == job.created_at
    assert json.loads(job.payload) == {
        "__honker_task__": {"task": "tests.app.tasks.add", "args": [1], "kwargs": {"b": 2}},
        "alkstore": {"schedule": "s", "scheduled_for": int(BASE.timestamp())},
    }
    assert job.payload.startswith('{"__honker_task__"')
    assert (at().next_fire_at, at().last_fire_at, at().skipped) == (BASE + MINUTE, BASE, 0)
    assert schedules.tick(BASE) == [] and jobs() == 1


def test_a_payload_that_is_no_task_stays_as_it_is() -> None:
    made(task=None, payload={"to": 1}, queue="raw")
    schedules.tick(BASE)
    assert Job.objects.get().payload == '{"to":1}'


DAY = 1440
MISSED = [("all", 120, 64, 1376), ("latest", 120, 1, 1439), ("none", 0, 0, 1440), ("none", 120, 1, 1439)]


@pytest.mark.parametrize(("catch_up", "grace", "fired", "skipped"), MISSED)
def test_a_day_was_missed(
    catch_up: str, grace: int, fired: int, skipped: int, settings: Any, caplog: Any
) -> None:
    """1,440 boundaries, the newest of which is half a minute old."""
    settings.ALKSTORE = {"CATCH_UP_GRACE": grace}
    made(catch_up=catch_up)
    now = BASE + (DAY - 1) * MINUTE + timedelta(seconds=30)
    with told_of_skipped() as told, caplog.at_level(logging.WARNING):
        found = schedules.tick(now)
    assert (len(found), jobs(), at().skipped) == (fired, fired, skipped)
    assert at().next_fire_at == now + timedelta(seconds=30)
    assert told == [("s", skipped)]
    assert f"skipped {skipped} boundaries" in caplog.text
    first = BASE if catch_up == "all" else now - timedelta(seconds=30)
    assert [each.scheduled_for for each in found] == [first + n * MINUTE for n in range(fired)]
    assert at().last_fire_at == (found[-1].scheduled_for if found else None)
    assert schedules.tick(now) == []


def test_none_fires_what_is_just_due(settings: Any) -> None:
    settings.ALKSTORE = {"CATCH_UP_GRACE": 0}
    made(catch_up="none")
    assert len(schedules.tick(BASE)) == 1


def test_up_to_64_are_made_up_for_without_a_jump() -> None:
    made("a", "@every 10s", catch_up="all")
    assert len(schedules.tick(BASE + timedelta(seconds=639))) == 64
    assert (at("a").next_fire_at, at("a").skipped) == (BASE + timedelta(seconds=640), 0)
    made("b", "@every 10s", catch_up="latest")
    assert len(schedules.tick(BASE + timedelta(seconds=639))) == 1
    assert at("b").next_fire_at == BASE + timedelta(seconds=640)  # it keeps its phase


@pytest.mark.parametrize("catch_up", ["all", "latest", "none"])
def test_three_days_of_seconds_are_not_walked_through(monkeypatch: pytest.MonkeyPatch, catch_up: str) -> None:
    steps: list[datetime] = []
    step = Cron.next_after

    def counted(cron: Cron, instant: datetime) -> datetime | None:
        steps.append(instant)
        return step(cron, instant)

    made("t", "* * * * * *", catch_up=catch_up, timezone="Europe/Berlin")
    monkeypatch.setattr(Cron, "next_after", counted)
    fired = schedules.tick(BASE + timedelta(days=3))
    assert 1 <= len(steps) <= 2 * 64
    assert len(fired) + at("t").skipped == 3 * 86_400 + 1


def test_fifty_at_once_after_three_days(django_assert_max_num_queries: Any) -> None:
    for number in range(50):
        made(f"s{number}")
    with django_assert_max_num_queries(50 * 8):  # whatever the number of boundaries
        assert len(schedules.tick(BASE + timedelta(days=3))) == 50


def test_more_than_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    from alkstore_django import firing

    monkeypatch.setattr(firing.fire_due, "__defaults__", (None, 3))
    for number in range(10):
        made(f"s{number}", due=BASE + number * MINUTE)
    fired = schedules.tick(BASE + 9 * MINUTE)
    assert [each.schedule for each in fired] == [
        f"s{number}" for number in range(10)
    ]  # the longest due first


def test_the_time_is_that_of_the_database() -> None:
    made("past", "@every 1h", due=db_now())
    made("future", "@every 1h", due=db_now() + timedelta(seconds=60))
    assert [each.schedule for each in schedules.tick()] == ["past"]


# -- the guard ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["advance", "pause", "edit", "delete"])
def test_what_changes_after_the_look_is_not_fired(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alkstore_django import firing

    made()
    plan = firing._plan

    def meanwhile(*args: Any) -> Any:
        row = ScheduledTask.objects.filter(pk="s")
        if change == "delete":
            row.delete()
        else:
            columns = {"advance": "next_fire_at", "pause": "enabled", "edit": "cron_expr"}
            value = {"advance": int(BASE.timestamp()) + 60, "pause": 0, "edit": "0 0 * * *"}[change]
            row.update(**{columns[change]: value})
        return plan(*args)

    monkeypatch.setattr(firing, "_plan", meanwhile)
    assert schedules.tick(BASE) == []
    assert jobs() == 0


Meanwhile = Callable[[Callable[[], Any]], None]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Do something once, when the schedules that are due have been read, and nothing is written yet."""
    from alkstore_django import firing

    plan = firing._plan

    def once(act: Callable[[], Any]) -> None:
        acts = [act]

        def acting(*args: Any) -> Any:
            if acts:
                acts.pop()()
            return plan(*args)

        monkeypatch.setattr(firing, "_plan", acting)

    return once


@pytest.mark.parametrize(
    ("change", "queue", "payload"),
    [
        ({"queue": "new"}, "new", "1"),
        ({"payload": 2}, "old", "2"),
        ({"priority": 7}, "old", "1"),
        ({"expires": 60}, "old", "1"),
        ({"expires": None}, "old", "1"),
        ({"max_attempts": 9}, "old", "1"),
        ({"catch_up": "all"}, "old", "1"),
        ({"overlap": False}, "old", "1"),
    ],
)
def test_what_an_update_has_changed_is_fired(
    change: dict[str, Any], queue: str, payload: str, meanwhile: Meanwhile
) -> None:
    made(task=None, payload=1, queue="old", expires=30)
    meanwhile(lambda: schedules.update("s", **change))
    fired = schedules.tick(BASE + MINUTE)
    assert len(fired) == (2 if "catch_up" in change else 1)
    job = Job.objects.get(pk=fired[-1].job_id)
    assert (job.queue, job.payload) == (queue, payload)
    assert (job.priority, job.max_attempts) == (change.get("priority", 0), change.get("max_attempts", 3))
    (lasts,) = {job.expires_at and job.expires_at - job.created_at for job in Job.objects.all()}
    assert lasts == change.get("expires", 30)
    assert ScheduledJob.objects.exists() == ("overlap" in change)
    assert (jobs(), at().skipped) == (len(fired), 2 - len(fired))


def test_a_zone_that_was_changed_is_not_fired_by_the_old_one(meanwhile: Meanwhile) -> None:
    made(expression="0 12 * * *")
    meanwhile(lambda: schedules.update("s", timezone="Asia/Tokyo"))
    assert schedules.tick(BASE) == [] and jobs() == 0
    assert at().skipped == 0


def test_what_another_program_has_changed_is_fired(meanwhile: Meanwhile) -> None:
    foreign(payload="1", queue="old", expires_s=None)
    columns = {"payload": "2", "queue": "new", "expires_s": 60, "priority": 4}
    meanwhile(lambda: ScheduledTask.objects.update(**columns))
    (fired,) = schedules.tick(BASE)
    job = Job.objects.get()
    assert (job.queue, job.payload, job.priority, fired.queue) == ("new", "2", 4, "new")
    assert job.expires_at == job.created_at + 60


def test_it_is_only_counted_meanwhile(meanwhile: Meanwhile) -> None:
    """What firings write says nothing of what is to be fired."""
    made()
    meanwhile(lambda: ScheduleOptions.objects.update(skipped=5, last_fire_at=1))
    assert len(schedules.tick(BASE)) == 1 and at().skipped == 5


def test_enqueue_and_advance_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from alkstore_django import firing

    made()
    monkeypatch.setattr(firing, "_put_in", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        schedules.tick(BASE)
    monkeypatch.undo()
    assert at().next_fire_at == BASE
    assert len(schedules.tick(BASE)) == 1


def test_it_can_be_a_part_of_a_transaction() -> None:
    made()
    with transaction.atomic():
        assert len(schedules.tick(BASE)) == 1
        transaction.set_rollback(True)
    assert (jobs(), at().next_fire_at) == (0, BASE)


# -- overlap --------------------------------------------------------------------------------------------


def test_what_may_not_overlap_waits_for_its_job() -> None:
    """Q609: an every-minute schedule whose run takes 150 s."""
    made(overlap=False, catch_up="all")
    (first,) = schedules.tick(BASE)
    with told_of_skipped() as told:
        assert schedules.tick(BASE + MINUTE) == []  # queued
        job = queues.Queue("default").claim_one("w")
        assert job is not None and job.id == first.job_id
        assert schedules.tick(BASE + 2 * MINUTE) == []  # running
    assert told == [("s", 1), ("s", 1)]
    assert (at().skipped, at().last_fire_at, at().next_fire_at) == (2, BASE, BASE + 3 * MINUTE)
    assert schedules.run_now("s") is None
    assert queues.Queue("default").ack(job)
    (second,) = schedules.tick(BASE + 3 * MINUTE)
    assert list(ScheduledJob.objects.values_list("job_id", "schedule")) == [(second.job_id, "s")]
    queues.cancel(second.job_id)
    assert len(schedules.tick(BASE + 6 * MINUTE)) == 1  # of three boundaries that `all` would make up for
    assert at().skipped == 4


def test_a_retry_and_a_new_life_count_as_the_run() -> None:
    made(overlap=False)
    (fired,) = schedules.tick(BASE)
    queue = queues.Queue("default")
    job = queue.claim_one("w")
    assert job is not None and queue.retry(job, 3600)
    assert schedules.tick(BASE + MINUTE) == []
    factories.change(fired.job_id, run_at=0)
    job = queue.claim_one("w")
    assert job is not None and queue.fail(job)
    (second,) = schedules.tick(BASE + 2 * MINUTE)  # a dead letter does not run
    queues.cancel(second.job_id)
    queues.requeue([fired.job_id])
    assert schedules.tick(BASE + 3 * MINUTE) == []  # but then it lives again


def test_a_requeue_under_another_id_is_followed() -> None:
    made(overlap=False)
    (fired,) = schedules.tick(BASE)
    queue = queues.Queue("default")
    job = queue.claim_one("w")
    assert job is not None and queue.fail(job)
    Job.objects.create(id=fired.job_id, queue="elsewhere", payload="1")
    assert list(queues.requeue([fired.job_id]).values()) != [fired.job_id]
    Job.objects.filter(pk=fired.job_id).delete()
    assert schedules.tick(BASE + MINUTE) == []


def test_what_may_overlap_again_forgets_its_runs() -> None:
    made(overlap=False)
    schedules.tick(BASE)
    schedules.update("s", overlap=True)
    assert not ScheduledJob.objects.exists()
    assert len(schedules.tick(BASE + MINUTE)) == 1


def test_a_unique_task_has_one_job() -> None:
    made(task=only_one, args=(1,))
    (fired,) = schedules.tick(BASE)
    assert schedules.tick(BASE + MINUTE) == [] and at().skipped == 1
    assert schedules.run_now("s") is None
    queues.cancel(fired.job_id)
    assert len(schedules.tick(BASE + 2 * MINUTE)) == 1


def test_the_boundary_goes_with_the_job_whatever_happens_to_it(journal: Journal) -> None:
    """A failed attempt, a dead letter, a new life: it still stands for the same."""
    made(task=contextual.boundary, args=(journal.path, 1), max_attempts=2)
    (fired,) = schedules.tick(BASE)
    work()
    queues.requeue([fired.job_id])
    work()
    assert journal.lines == [str(BASE)] * 4
    schedules.run_now("s")
    work()
    assert journal.lines[4:] == ["None"] * 2


# -- by hand --------------------------------------------------------------------------------------------


def test_run_now() -> None:
    made(task=tasks.add, args=(1, 2), priority=5)
    schedules.pause("s")
    job_id = schedules.run_now("s")
    job = Job.objects.get(pk=job_id)
    assert job.priority == 5 and json.loads(job.payload)["alkstore"] == {"schedule": "s"}
    schedules.resume("s")
    assert at().last_fire_at is None
    with pytest.raises(ValueError, match="no schedule"):
        schedules.run_now("another")


# -- rows of other programs -----------------------------------------------------------------------------


def test_a_foreign_row_is_fired_as_honker_would() -> None:
    foreign(payload='{"__honker_task__": {"task": "x"}}', priority=2, max_attempts=0, expires_s=60)
    fired = schedules.tick(BASE + 99 * MINUTE)
    assert (len(fired), at("theirs").skipped) == (64, 36)
    job = Job.objects.first()
    assert job is not None
    assert (job.queue, job.payload, job.max_attempts) == ("emails", '{"__honker_task__": {"task": "x"}}', 1)
    row = ScheduledTask.objects.get()
    assert (row.next_fire_at, row.max_attempts) == (int((BASE + 100 * MINUTE).timestamp()), 0)
    assert at("theirs").owner == "foreign"


def test_a_foreign_row_is_read_in_the_zone_of_the_settings(settings: Any) -> None:
    """Q515: TIME_ZONE counts, and by honker's rules."""
    settings.TIME_ZONE = "Asia/Jakarta"
    foreign(cron_expr="25 8 13 * 5", due=BASE)  # the 13th AND a Friday: 13 March 2026
    schedules.tick(BASE)
    found = at("theirs").next_fire_at
    assert found is not None and found.isoformat() == "2026-03-13T01:25:00+00:00"


def test_an_expression_that_another_program_changed_is_read_by_its_rules() -> None:
    made(expression="0 9 * * *", timezone="Asia/Tokyo")
    ScheduledTask.objects.filter(pk="s").update(cron_expr="0 12 13 * 5")
    assert at().owner == "foreign" and at().timezone == "UTC"
    schedules.tick(BASE)
    found = at().next_fire_at
    assert found is not None and found.isoformat() == "2026-03-13T12:00:00+00:00"


# -- broken rows ----------------------------------------------------------------------------------------


def test_a_broken_row_stops_itself_alone(caplog: Any) -> None:
    foreign("bad", "not cron", due=BASE - MINUTE)
    foreign("never", "0 0 31 2 *", due=BASE - MINUTE)
    foreign("past", next_fire_at=-(10**14))
    made("zone", due=BASE - MINUTE)
    ScheduleOptions.objects.filter(pk="zone").update(timezone="Mars/Base")
    made("good")
    assert [each.schedule for each in schedules.tick(BASE)] == ["good"]
    problems = {each.name: each.problem for each in schedules.list()}
    assert problems.pop("good") is None
    assert set(problems) == {"bad", "never", "past", "zone"} and all(problems.values())
    assert "Mars/Base" in str(problems["zone"])
    assert at("bad").next_fire_at is None and at("bad").enabled and at("bad").cron is None
    assert jobs() == 1 and caplog.text.count("stands still") == 4
    with CaptureQueriesContext(connection) as queries:
        assert schedules.tick(BASE) == []
    assert len(queries) == 1 and caplog.text.count("stands still") == 4
    assert schedules.soonest() == at("good").next_fire_at


def test_a_correction_heals() -> None:
    foreign("theirs", "not cron")
    made("ours")
    ScheduleOptions.objects.filter(pk="ours").update(timezone="Mars/Base")
    assert schedules.tick(BASE) == []
    assert schedules.heal() == []
    ScheduledTask.objects.filter(pk="theirs").update(cron_expr="* * * * *")  # by another program
    assert [each.schedule for each in schedules.tick(BASE)] == ["theirs"]
    assert at("theirs").problem is None
    before = db_now()
    healed = schedules.update("ours", timezone="Asia/Tokyo")
    assert healed.problem is None and healed.next_fire_at is not None and healed.next_fire_at > before


def test_a_problem_that_goes_away_by_itself() -> None:
    made()
    ScheduleOptions.objects.update(timezone="Mars/Base")
    schedules.tick(BASE)
    ScheduleOptions.objects.update(timezone="UTC")  # as if the zones of the system were updated
    assert at().problem is not None
    assert schedules.heal() == ["s"]
    assert at().problem is None and at().next_fire_at is not None


@pytest.mark.parametrize("seconds", [-(2**63), -(2**60), -(2**56), -(10**14), -62_135_596_801])
def test_a_boundary_that_no_calendar_has_stops_its_schedule_alone(seconds: int) -> None:
    foreign("theirs", next_fire_at=seconds)
    made("ours", "@every 1h", catch_up="none")
    ScheduledTask.objects.filter(pk="ours").update(next_fire_at=seconds)
    made("good")
    assert [each.schedule for each in schedules.tick(BASE)] == ["good"]
    for name in ("theirs", "ours"):
        assert str(seconds) in str(at(name).problem)
    assert sorted(schedules.heal()) == ["ours", "theirs"]  # from now on
    assert at("ours").problem is None and at("theirs").next_fire_at is not None


def test_what_is_corrected_meanwhile_does_not_stand_still(meanwhile: Meanwhile) -> None:
    made(due=BASE)
    ScheduleOptions.objects.update(timezone="Mars/Base")
    meanwhile(lambda: schedules.update("s", timezone="Europe/Berlin"))
    assert schedules.tick(BASE) == []
    assert at().problem is None
    set_next("s", BASE)
    assert len(schedules.tick(BASE)) == 1


def test_what_is_gone_meanwhile_leaves_no_problem(meanwhile: Meanwhile) -> None:
    """Another program may make one of the same name."""
    foreign(cron_expr="not cron")
    meanwhile(lambda: schedules.unregister("theirs"))
    assert schedules.tick(BASE) == []
    assert not ScheduleOptions.objects.exists()


@pytest.mark.only("sqlite")
def test_bytes_that_are_no_text() -> None:
    foreign("payload")
    factories.ask("UPDATE _honker_scheduler_tasks SET payload = CAST(x'ff22' AS TEXT)")
    foreign("good")
    assert [each.schedule for each in schedules.tick(BASE)] == ["good"]
    assert "UTF-8" in str(at("payload").problem)
    foreign("name")
    factories.ask("UPDATE _honker_scheduler_tasks SET name = CAST(x'ff' AS TEXT) WHERE name = 'name'")
    assert schedules.tick(BASE) == []  # it can be neither fired nor marked, and is not looked at for ever
    assert "\\xff" in [each.name for each in schedules.list()]


@pytest.mark.only("sqlite")
def test_what_is_no_text_and_no_number_is_fired_all_the_same() -> None:
    """It is compared as it is stored, not as it is read."""
    foreign()
    factories.ask("UPDATE _honker_scheduler_tasks SET queue = CAST(x'71ff' AS TEXT), priority = 'high'")
    assert len(schedules.tick(BASE)) == 1
    assert Job.objects.values_list("queue", "priority").get() == (r"q\xff", 0)


def test_naive_settings(settings: Any) -> None:
    """Q611: stored instants are Unix seconds; the answers are aware."""
    found = []
    for zone, use_tz in [("America/Bogota", False), ("America/Bogota", True), ("Asia/Tokyo", False)]:
        settings.USE_TZ, settings.TIME_ZONE = use_tz, zone
        schedules.unregister("s")
        made(expression="0 3 * * *", timezone=None)
        (fired,) = schedules.tick(BASE)
        found.append((fired.scheduled_for, at().next_fire_at, at().timezone))
    assert found[0] == found[1] and found[0][1] != found[2][1]
    assert {each[0] for each in found} == {BASE}


@pytest.fixture
def enqueued() -> Iterator[list[tuple[Any, Any]]]:
    """Senders and results of ``task_enqueued``; whoever hears it fails."""
    heard: list[tuple[Any, Any]] = []

    def hear(sender: Any, task_result: Any, **kwargs: Any) -> None:
        heard.append((sender, task_result))
        raise ZeroDivisionError

    task_enqueued.connect(hear)
    yield heard
    task_enqueued.disconnect(hear)


def test_observers_hear_of_its_jobs(enqueued: list[tuple[Any, Any]], caplog: Any) -> None:
    made(args=(1,), kwargs={"b": 2}, task=tasks.add, queue="q", priority=4)
    foreign(payload='{"__honker_task__": {"task": "theirs", "args": [], "kwargs": {}}}')
    schedules.register("raw", "* * * * *", payload=[1], queue="raw")
    ours, *_ = [firing for firing in schedules.tick(BASE) if firing.schedule == "s"]
    ((sender, result),) = enqueued
    assert sender is AlkstoreBackend
    assert (result.id, result.status, result.args, result.kwargs) == (
        str(ours.job_id),
        TaskResultStatus.READY,
        [1],
        {"b": 2},
    )
    assert (result.task.func, result.task.queue_name, result.task.priority) == (tasks.add.func, "q", 4)
    assert result.enqueued_at == AlkstoreBackend.get_result(task_backends["default"], result.id).enqueued_at
    assert "Error calling" in caplog.text and "ZeroDivisionError" in caplog.text
    job_id = schedules.run_now("s")
    assert [each.id for _, each in enqueued] == [str(ours.job_id), str(job_id)]
