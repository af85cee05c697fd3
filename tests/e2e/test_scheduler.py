"""Schedulers as processes: beside workers and alone, killed, frozen, and with a database that goes away."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from alkstore_django import schedules
from alkstore_django.leadership import LOCK, leader
from alkstore_django.models import Job, Lock
from tests import factories
from tests.app import contextual, tasks
from tests.contract.scheduling import at, db_now, made
from tests.e2e.test_outage import BACK, end_sessions
from tests.processes import Journal, Process, Workers
from tests.queue_state import live

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
OFTEN = ("--interval", 0.2)
LEADS = r"Scheduler \S+ leads\.$"


@pytest.fixture(autouse=True)
def nobody_leads() -> Iterator[None]:
    yield
    Lock.objects.all().delete()


def scheduler(workers: Workers, *arguments: object, **environment: str) -> Process:
    found = workers.start(*(arguments or OFTEN), command="alkscheduler", **environment)
    found.wait_for(" looks after ")
    return found


def owner() -> str:
    found = leader("default")
    return found.owner if found else ""


def boundaries() -> list[int]:
    """What the live jobs stand for, in order."""
    from alkstore_django.envelopes import unseal

    moments = [unseal(payload).scheduled_for for payload in Job.objects.values_list("payload", flat=True)]
    return sorted(int(moment.timestamp()) for moment in moments if moment)


def is_gapless(moments: list[int]) -> bool:
    """Each second once."""
    return moments == [*range(moments[0], moments[0] + len(moments))]


def test_four_workers_fire_each_boundary_once(workers: Workers, journal: Journal) -> None:
    """Q601. Workers run what they have enqueued, and the tasks know what they stand for."""
    made("s", "* * * * * *", contextual.boundary, args=(journal.path,), catch_up="all", due=db_now() + SECOND)
    for _ in range(4):
        workers.start()
    for worker in workers.processes:
        worker.wait_for(" serves ")
    workers.wait_until(lambda: len(journal.lines) >= 6, "six boundaries")
    assert sum(worker.count(LEADS) for worker in workers.processes) == 1
    schedules.pause("s")
    workers.wait_until(lambda: not live(), "all are done")
    assert [worker.stop() for worker in workers.processes] == [0, 0, 0, 0]
    assert is_gapless(sorted(int(datetime.fromisoformat(line).timestamp()) for line in journal.lines))
    assert leader("default") is None


def test_it_is_off_where_it_is_told_so(workers: Workers, journal: Journal) -> None:
    made("s", "* * * * * *", tasks.nothing, due=db_now())
    tasks.write.enqueue(journal.path, "done")
    worker = workers.ready("--no-scheduler")
    batch = workers.start("--batch")
    assert batch.join() == 0
    workers.wait_until(lambda: journal.keys == ["done"], "a task")
    assert worker.stop() == 0
    assert live() == 0 and at("s").last_fire_at is None


def test_a_killed_leader_is_followed(workers: Workers) -> None:
    made("s", "* * * * * *", catch_up="all", due=db_now() + SECOND)
    first = scheduler(workers)
    first.wait_for(LEADS)
    second = scheduler(workers)
    second.wait_for("stands by")
    workers.wait_until(lambda: live() >= 1, "the first fires")
    first.reap()
    factories.change(LOCK, model=Lock, expires_at=factories.at(0))  # type: ignore[arg-type] # 60 s later
    second.wait_for(LEADS)
    before = live()
    workers.wait_until(lambda: live() >= before + 2, "the second fires")
    assert second.stop() == 0
    assert is_gapless(boundaries()) and not Lock.objects.exists()


def test_a_frozen_leader_does_not_fire_again(workers: Workers) -> None:
    made("s", "* * * * * *", catch_up="all", due=db_now() + SECOND)
    first = scheduler(workers)
    first.wait_for(LEADS)
    second = scheduler(workers)
    second.wait_for("stands by")
    first.freeze()
    factories.change(LOCK, model=Lock, expires_at=factories.at(0))  # type: ignore[arg-type] # 60 s later
    second.wait_for(LEADS)
    workers.wait_until(lambda: live() >= 2, "the second fires")
    first.send(signal.SIGCONT)
    before = live()
    workers.wait_until(lambda: live() >= before + 2, "both are at work")
    assert [each.stop() for each in (first, second)] == [0, 0]
    assert is_gapless(boundaries()) and at("s").skipped == 0


def test_a_stopped_leader_is_followed_at_once(workers: Workers) -> None:
    made("s", "@every 1h", due=db_now() + timedelta(hours=1))
    first = scheduler(workers)
    first.wait_for(LEADS)
    second = scheduler(workers)
    second.wait_for("stands by")
    assert first.stop(signal.SIGINT) == 0
    second.wait_for(LEADS)
    assert second.stop() == 0 and owner() == ""


def test_what_others_change_is_seen(workers: Workers) -> None:
    """Q607: it sleeps towards a boundary that is an hour away."""
    made("far", "@every 1h", due=db_now() + timedelta(hours=1))
    process = scheduler(workers, "--interval", 4)
    process.wait_for(LEADS)
    schedules.register("soon", "* * * * * *", tasks.nothing)
    due = at("soon").next_fire_at
    workers.wait_until(lambda: live(), "it fires")
    assert due is not None and db_now() - due <= timedelta(seconds=5)
    schedules.pause("soon")
    count = live()
    made("mark", "@every 1h", tasks.add, args=(1, 2), due=db_now())
    workers.wait_until(lambda: at("mark").last_fire_at, "it has looked again")
    assert live() == count + 1
    assert process.stop() == 0


def test_without_schedules_nobody_leads(workers: Workers) -> None:
    process = scheduler(workers)
    made("s", "@every 1h", due=db_now())
    process.wait_for(LEADS)
    schedules.unregister("s")
    process.wait_for("stopped leading")
    assert not Lock.objects.exists()
    assert process.stop() == 0


def test_the_declared_are_written_at_the_start(workers: Workers) -> None:
    process = scheduler(workers, *OFTEN, DJANGO_SETTINGS_MODULE="tests.e2e.scheduling")
    assert at("tests.app.scheduled.tick_tock").owner == "code"
    assert at("of the settings").owner == "settings"
    assert process.stop() == 0
    again = scheduler(workers)
    assert at("of the settings").withdrawn
    assert again.stop() == 0


@pytest.mark.only("postgresql", "mysql")
def test_sessions_end(workers: Workers) -> None:
    made("s", "* * * * * *", catch_up="all", due=db_now() + SECOND)
    process = scheduler(workers)
    for times in (1, 2):
        end_sessions()
        process.wait_for(BACK, times)
    before = live()
    workers.wait_until(lambda: live() >= before + 2, "it goes on")
    assert process.count("WARNING The database is in trouble") == 2 and process.count("Traceback") == 0
    assert process.stop() == 0
    assert is_gapless(boundaries())


def test_without_tables(workers: Workers, bare_settings: str) -> None:
    process = workers.start(command="alkscheduler", DJANGO_SETTINGS_MODULE=bare_settings)
    assert process.join() == 1 and "manage.py migrate" in process.output


@pytest.mark.parametrize("wrong", ["0", "21", "-1"])
def test_a_bad_interval(wrong: str) -> None:
    with pytest.raises(CommandError, match="--interval|number of seconds"):
        call_command("alkscheduler", f"--interval={wrong}")


def test_a_second_of_schedules_is_not_late(workers: Workers) -> None:
    """The boundary is fired when its second begins, by the clock of the database."""
    due = db_now() + 10 * SECOND  # in which it has to start, on whatever machine
    made("s", "@every 1h", due=due)
    process = scheduler(workers, "--interval", 15)
    workers.wait_until(lambda: live(), "it fires")
    created: Any = Job.objects.get().created_at
    assert due.timestamp() <= created <= due.timestamp() + 1
    assert process.stop() == 0
