"""``manage.py alkschedule`` with what is stored; ``check`` has a test of its own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from alkstore_django import declarations, schedules
from alkstore_django.models import Job, ScheduledTask, ScheduleOptions
from tests import factories
from tests.app import tasks
from tests.contract.scheduling import unregister_before

pytestmark = pytest.mark.django_db(databases=["default", "other"])

DUE = datetime(2026, 3, 28, 1, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "_declared", {})


def alkschedule(*arguments: str) -> str:
    output = StringIO()
    call_command("alkschedule", *arguments, stdout=output)
    return output.getvalue()


def as_json(*arguments: str) -> Any:
    return json.loads(alkschedule(*arguments, "--json"))


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as caught:
        alkschedule(*arguments)
    return str(caught.value)


def at(name: str, moment: datetime) -> None:
    ScheduledTask.objects.filter(pk=name).update(next_fire_at=int(moment.timestamp()))


def foreign(name: str = "theirs", cron_expr: str = "0 0 13 * 5", **columns: Any) -> None:
    row = {"queue": "emails", "payload": '{"to": 1}', "next_fire_at": int(DUE.timestamp()), **columns}
    ScheduledTask.objects.create(name=name, cron_expr=cron_expr, **row)


def nightly(**options: Any) -> None:
    given = {"args": (1, 2), "timezone": "Europe/Berlin", **options}
    schedules.register("nightly", "30 2 * * *", tasks.add, **given)
    at("nightly", DUE)


# -- looking --------------------------------------------------------------------------------------------


def test_the_list() -> None:
    assert alkschedule("list") == "There is no schedule.\n"
    nightly()
    schedules.register("paused one", "@every 90s", tasks.nothing, enabled=False)
    foreign()
    ScheduleOptions.objects.filter(pk="nightly").update(
        skipped=7, last_fire_at=int((DUE - timedelta(days=1)).timestamp())
    )
    lines = [" ".join(line.split()) for line in alkschedule("list").splitlines()]
    assert lines == [
        "schedule expression zone owner state next last skipped",
        "nightly 30 2 * * * Europe/Berlin admin on 2026-03-28 01:30:00+00:00 2026-03-27 01:30:00+00:00 7",
        "paused one @every 90s UTC admin paused - - 0",
        "theirs 0 0 13 * 5 UTC foreign on 2026-03-28 01:30:00+00:00 - 0",
    ]


def test_the_list_as_json() -> None:
    assert as_json("list") == []
    nightly()
    foreign(payload="{", cron_expr="no cron")
    first, second = as_json("list")
    assert first["next_fire_at"] == "2026-03-28T01:30:00+00:00"
    assert first["description"] == "at 02:30 every day"
    assert (first["portable"], first["last_fire_at"]) == (False, None)
    assert "second pass" in first["why_not_portable"]
    assert {*schedules.Schedule.__dataclass_fields__} <= {*first}
    assert (second["name"], second["description"], second["payload"]) == ("theirs", None, "{")


def test_what_stands_still_says_why() -> None:
    foreign("bad\x1b[31m", "61 * * * *", next_fire_at=1)
    foreign("worse", "0 3 * * *", next_fire_at=2**62)
    schedules.tick()
    table, why = alkschedule("list").rsplit("\n", 2)[:2]
    assert why.startswith(r"bad\x1b[31m stands still: In the minute field, '61'")
    assert r"bad\x1b[31m" in table
    assert "broken" in table
    assert "\x1b" not in table
    assert "is broken, and not due: In the minute field" in alkschedule("next", "bad\x1b[31m")
    assert as_json("next", "bad\x1b[31m")["upcoming"] == []


def test_next() -> None:
    nightly()
    text = alkschedule("next", "nightly", "-n", "3")
    assert text.startswith("Schedule nightly is due at 02:30 every day, by the clocks of Europe/Berlin.\n\n")
    assert text.splitlines()[2:] == [
        "Europe/Berlin                   UTC",
        "Sat 2026-03-28 02:30:00 +01:00  2026-03-28 01:30:00Z",
        "  clocks go forward from 02:00 to 03:00 (2026-03-29 01:00Z)",
        "Sun 2026-03-29 03:00:00 +02:00  2026-03-29 01:00:00Z",
        "Mon 2026-03-30 02:30:00 +02:00  2026-03-30 00:30:00Z",
    ]
    found = as_json("next", "nightly", "-n", "2")
    assert found["upcoming"] == ["2026-03-28T01:30:00+00:00", "2026-03-29T01:00:00+00:00"]
    assert len(as_json("next", "nightly")["upcoming"]) == 5


def test_next_of_one_that_is_paused() -> None:
    nightly()
    schedules.pause("nightly")
    assert alkschedule("next", "nightly") == "Schedule nightly is paused, and not due.\n"
    assert as_json("next", "nightly")["upcoming"] == []


def test_next_by_the_rules_of_another_program() -> None:
    """Friday the 13th, and not each Friday and each 13th."""
    foreign()
    assert as_json("next", "theirs", "-n", "2")["upcoming"][1] == "2026-11-13T00:00:00+00:00"


# -- doing ----------------------------------------------------------------------------------------------


def test_run() -> None:
    nightly()
    schedules.pause("nightly")
    text = alkschedule("run", "nightly")
    (job,) = Job.objects.all()
    assert text == f"Job {job.pk} is enqueued in queue default.\n"
    assert '"args":[1,2]' in job.payload
    found = as_json("run", "nightly")
    assert found == {"name": "nightly", "queue": "default", "job_id": found["job_id"]}
    assert Job.objects.filter(pk=found["job_id"]).exists()
    (stored,) = ScheduledTask.objects.all()
    assert (stored.next_fire_at, stored.enabled) == (int(DUE.timestamp()), 0)


def test_run_of_one_that_must_not_overlap() -> None:
    nightly(overlap=False)
    alkschedule("run", "nightly")
    assert "No job was put in: the last one lives" in refused("run", "nightly")
    assert Job.objects.count() == 1


def test_pause_and_resume() -> None:
    nightly()
    foreign()
    assert alkschedule("pause", "nightly", "theirs") == (
        "Schedule nightly is paused.\nSchedule theirs is paused.\n"
    )
    assert alkschedule("pause", "nightly") == "Schedule nightly was paused already.\n"
    assert not any(each.enabled for each in schedules.list())
    assert as_json("resume", "nightly", "nightly") == [{"name": "nightly", "resumed": True}]
    assert alkschedule("resume", "theirs") == "Schedule theirs is resumed.\n"
    assert alkschedule("resume", "theirs") == "Schedule theirs was not paused.\n"
    assert as_json("pause", "theirs") == [{"name": "theirs", "paused": True}]
    (found,) = [each for each in schedules.list() if each.enabled]
    assert found.next_fire_at is not None
    assert found.next_fire_at > datetime.now(UTC), "it goes on from now"


def test_what_cannot_be_due_is_not_resumed() -> None:
    foreign(cron_expr="61 * * * *", enabled=0)
    assert "'theirs' cannot be due" in refused("resume", "theirs")


def partly(*arguments: str) -> tuple[str, str]:
    """What a command has printed, and why it has failed in the end."""
    output = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("alkschedule", *arguments, stdout=output)
    return output.getvalue(), str(caught.value)


def test_what_cannot_be_resumed_hides_nothing() -> None:
    nightly(enabled=False)
    foreign("bad", cron_expr="61 * * * *", enabled=0)
    foreign("worse", cron_expr="62 * * * *", enabled=0)
    said, why = partly("resume", "bad", "nightly", "worse")
    assert said == "Schedule nightly is resumed.\n"
    first, second = why.splitlines()
    assert "'bad' cannot be due" in first
    assert "'worse' cannot be due" in second
    schedules.pause("nightly")
    said, why = partly("resume", "bad", "nightly", "--json")
    assert json.loads(said) == [
        {"name": "bad", "resumed": False, "error": why},
        {"name": "nightly", "resumed": True},
    ]


@pytest.mark.parametrize(("action", "done"), [("pause", "paused"), ("resume", "resumed")])
def test_what_is_gone_meanwhile(action: str, done: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nightly(enabled=action == "pause")
    unregister_before(monkeypatch, action, "theirs")
    foreign()
    gone = "There is no schedule 'theirs' any more."
    assert partly(action, "theirs", "nightly") == (f"Schedule nightly is {done}.\n", gone)
    foreign()
    said, why = partly(action, "theirs", "nightly", "--json")
    assert why == gone
    assert json.loads(said) == [
        {"name": "theirs", done: False, "error": gone},
        {"name": "nightly", done: False},
    ]


@pytest.mark.parametrize("action", ["next", "run", "pause", "resume"])
def test_a_name_that_is_not_there(action: str) -> None:
    assert refused(action, "nothing") == "There is no schedule 'nothing'; there is none at all."
    nightly()
    for number in range(25):
        foreign(f"x{number:02}")
    message = refused(action, "Nightly")
    assert message.startswith("There is no schedule 'Nightly'; there are nightly, x00, x01, ")
    assert message.endswith("x18 and 6 more.")
    if action in ("pause", "resume"):
        refused(action, "nightly", "nothing")
        assert schedules.list()[0].enabled, "all or none"


def test_sync() -> None:
    schedules.schedule("0 3 * * *", name="declared")(tasks.nothing)
    foreign("taken")
    assert alkschedule("sync") == "Schedule declared is added.\n0 unchanged.\n"
    assert as_json("sync") == {
        "added": [],
        "changed": [],
        "unchanged": ["declared"],
        "withdrawn": [],
        "refused": {},
    }
    schedules.schedule("0 4 * * *", name="taken")(tasks.nothing)
    declarations._declared.pop("declared")
    assert "Schedule taken: name: 'taken' is a schedule of another program" in refused("sync")
    assert "declared" in alkschedule("list")
    assert "withdrawn" in alkschedule("list")


def test_another_database() -> None:
    schedules.register("there", "@daily", payload=1, queue="q", using="other")
    assert alkschedule("list") == "There is no schedule.\n"
    assert "there" in alkschedule("list", "--database", "other")
    assert alkschedule("pause", "there", "--database", "other") == "Schedule there is paused.\n"
    assert "There is no database 'nowhere'" in refused("list", "--database", "nowhere")
    job_id = as_json("run", "there", "--database", "other")["job_id"]
    assert factories.columns(job_id, "queue", using="other") == ("q",)


def test_without_time_zones(settings: Any) -> None:
    """What is stored are instants; only what is shown is by the clocks of ``TIME_ZONE``."""
    settings.USE_TZ, settings.TIME_ZONE = False, "America/Bogota"
    nightly(timezone=None)
    assert "America/Bogota  admin  on     2026-03-27 20:30:00" in alkschedule("list")
    found = as_json("next", "nightly", "-n", "2")
    assert found["upcoming"] == ["2026-03-28T01:30:00+00:00", "2026-03-28T07:30:00+00:00"]
    assert "Sat 2026-03-28 02:30:00 -05:00  2026-03-28 07:30:00Z" in alkschedule("next", "nightly")
