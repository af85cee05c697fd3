"""Schedules and the leader's lock, shared with honker: either may register, and either may fire."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from alkstore_django import schedules
from alkstore_django.leadership import Leadership, leader
from tests.interop import honker, tasks
from tests.interop.functions import ask
from tests.interop.processes import stop, wait_for
from tests.interop.shared import SharedFile

LEAD = """
import asyncio, sys, honker

scheduler = honker.Scheduler(honker.open(sys.argv[1]))
print("begins", flush=True)
asyncio.run(scheduler.run())
"""

BASE = datetime(2026, 3, 2, 12, tzinfo=UTC)


def register(
    shared: SharedFile, name: str, cron: str, payload: str = '{"to": 1}', queue: str = "emails"
) -> None:
    assert ask(shared, "scheduler_register", name, queue, cron, payload, 2, 60) == 1


def row(shared: SharedFile, name: str) -> dict[str, Any]:
    (found,) = shared.rows("SELECT * FROM _honker_scheduler_tasks WHERE name = %s", name)
    return found


def set_due(shared: SharedFile, name: str, moment: datetime) -> None:
    shared.execute(
        "UPDATE _honker_scheduler_tasks SET next_fire_at = %s WHERE name = %s", int(moment.timestamp()), name
    )


def test_what_honker_registered_we_fire(shared: SharedFile) -> None:
    register(shared, "theirs", "*/5 * * * *")
    found = schedules.get("theirs")
    assert found is not None
    assert (found.owner, found.priority, found.expires, found.problem) == ("foreign", 2, 60, None)
    before = row(shared, "theirs")
    assert found.next_fire_at == datetime.fromtimestamp(before["next_fire_at"], UTC)
    set_due(shared, "theirs", BASE)
    fired = schedules.tick(BASE + timedelta(minutes=12))
    assert [each.scheduled_for.minute for each in fired] == [0, 5, 10]
    (job, *_) = shared.rows("SELECT * FROM _honker_live ORDER BY id")
    assert (job["payload"], job["priority"], job["max_attempts"]) == ('{"to": 1}', 2, 3)
    moved = int((BASE + timedelta(minutes=15)).timestamp())
    assert row(shared, "theirs") == {**before, "next_fire_at": moved}
    (listed,) = json.loads(ask(shared, "scheduler_list"))
    assert (listed["name"], listed["next_fire_at"], listed["enabled"]) == ("theirs", moved, True)


def test_what_we_registered_honker_fires_and_we_run(shared: SharedFile) -> None:
    schedules.register("ours", "0 3 * * mon-fri", tasks.add, args=(1, 2), timezone="UTC", max_attempts=4)
    (listed,) = json.loads(ask(shared, "scheduler_list"))
    assert (listed["cron_expr"], listed["max_attempts"]) == ("0 3 * * 1-5", 4)
    set_due(shared, "ours", BASE)
    (fired,) = json.loads(ask(shared, "scheduler_tick", int(BASE.timestamp())))
    assert row(shared, "ours")["next_fire_at"] == int(datetime(2026, 3, 3, 3, tzinfo=UTC).timestamp())
    shared.manage("alkworker", "--batch")
    assert tasks.add.get_result(str(fired["job_id"])).return_value == 3


def test_honker_pauses_resumes_and_changes_what_is_ours(shared: SharedFile) -> None:
    schedules.register("ours", "0 3 * * *", tasks.add, args=(1, 2), timezone="Asia/Tokyo")
    assert ask(shared, "scheduler_pause", "ours") == 1
    assert not found(shared).enabled
    assert ask(shared, "scheduler_resume", "ours") == 1
    assert found(shared).owner == "admin"
    assert ask(shared, "scheduler_update", "ours", "0 4 * * *", None, None, None, 0) == 1
    changed = found(shared)
    assert (changed.owner, changed.expression, changed.timezone) == ("foreign", "0 4 * * *", "UTC")
    schedules.unregister("ours")
    assert json.loads(ask(shared, "scheduler_list")) == []


def test_an_expression_of_ours_stops_no_tick_of_honkers(shared: SharedFile) -> None:
    """Every row of ours is in its grammar; what it cannot say is not portable, and still no error."""
    for number, expression in enumerate(
        (
            "@daily",
            "0 22-2 * * *",
            "0 0 * * fri-mon",
            "5/15 * * * *",
            "0 0 1 * mon",
            "*/10 * * * * *",
            "@every 90s",
        )
    ):
        schedules.register(f"s{number}", expression, tasks.add, args=(1, 2), timezone="Europe/Berlin")
    shared.execute("UPDATE _honker_scheduler_tasks SET next_fire_at = %s", int(BASE.timestamp()))
    fired = json.loads(ask(shared, "scheduler_tick", int(BASE.timestamp())))
    assert {each["name"] for each in fired} == {f"s{number}" for number in range(7)}


def test_one_of_both_leads(shared: SharedFile) -> None:
    ours = Leadership("default", "alkstore-test")
    assert ours.hold()
    assert ask(shared, "lock_acquire", "honker-scheduler", "honker", 60) == 0
    ours.release()
    assert ask(shared, "lock_acquire", "honker-scheduler", "honker", 60) == 1
    assert not ours.hold()
    found = leader("default")
    assert found is not None and (found.owner, found.is_ours) == ("honker", False)
    assert ask(shared, "lock_release", "honker-scheduler", "honker") == 1
    assert ours.hold()


def test_a_scheduler_of_honkers_leads_and_ours_follows(shared: SharedFile) -> None:
    register(shared, "often", "@every 1s")
    with honker.started("-c", LEAD, shared.path, stdout=subprocess.PIPE) as theirs:
        wait_for(lambda: leader("default"), "honker leads")
        arguments = ("alkscheduler", "--interval", "0.2", "--skip-checks")
        with shared.started(*arguments, stderr=subprocess.PIPE) as ours:
            assert ours.stderr is not None
            while "stands by" not in (line := ours.stderr.readline()):
                assert line, "our scheduler has ended"
            theirs.kill()
            theirs.wait()
            shared.execute("UPDATE _honker_locks SET expires_at = unixepoch()")
            wait_for(lambda: (found := leader("default")) and found.is_ours, "ours leads")
            count = len(shared.rows("SELECT id FROM _honker_live"))
            wait_for(lambda: len(shared.rows("SELECT id FROM _honker_live")) > count, "it fires")
            stop(ours)


def found(shared: SharedFile) -> schedules.Schedule:
    schedule = schedules.get("ours")
    assert schedule is not None
    return schedule
