"""What ``alkhealth`` finds, one thing at a time, and what it does not mind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from alkstore_django import diagnosis, health, registry, schedules, served
from alkstore_django.diagnosis import Diagnosis, Finding, diagnose
from alkstore_django.filesystems import network_type
from alkstore_django.leadership import LOCK
from alkstore_django.models import DeadJob, Lock, WorkerProcess
from alkstore_django.queues import Queue
from alkstore_django.workers import STALE, Entry
from tests import factories
from tests.app import tasks
from tests.contract import scheduling
from tests.factories import at, now

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_tasks_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their queues would need a worker, too, as soon as their modules are imported."""
    ours = [task for task in registry.declared() if task.func.__module__ == tasks.__name__]
    monkeypatch.setattr(served, "declared", lambda: ours)


def look(**options: Any) -> Diagnosis:
    return diagnose("default", **options)


def found(**options: Any) -> dict[str, list[Finding]]:
    """What was found, by code, but for queues without a worker."""
    by_code: dict[str, list[Finding]] = {}
    for finding in look(**options).findings:
        if finding.code != "no-worker":
            by_code.setdefault(finding.code, []).append(finding)
    return by_code


def lonely() -> set[str | None]:
    return {finding.queue for finding in look().findings if finding.code == "no-worker"}


@pytest.fixture
def worker() -> Entry:
    """A worker for every queue."""
    entry = Entry("default", "w", ["*"])
    entry.write(0)
    return entry


def due(queue: str, age: int, **columns: Any) -> int:
    """A task that has been due for so many seconds."""
    job_id = int(tasks.nothing.using(queue_name=queue).enqueue().id)
    factories.change(job_id, run_at=at(-age), **columns)
    return job_id


@pytest.mark.usefixtures("worker")
def test_all_is_well() -> None:
    due("mail", 10)
    report = look()
    assert report.findings == []
    assert report.is_healthy
    assert report.database == "default"
    assert report.checked_at is not None
    assert now() - 60 < report.checked_at <= now()
    (entry,) = report.workers
    assert entry.worker_id == "w"
    assert [(each.queue, each.workers, each.is_paused) for each in report.queues] == [
        ("default", 1, False),
        ("mail", 1, False),
    ]
    oldest = {each.queue: each.oldest_due for each in report.queues}
    assert oldest["default"] is None
    assert oldest["mail"] in range(10, 70)


# -- workers --------------------------------------------------------------------------------------------


def test_a_queue_without_a_worker(settings: Any) -> None:
    assert lonely() == {"default"}
    assert not look().is_healthy
    entry = Entry("default", "w", ["default", "mail*"])
    entry.write(0)
    assert look().is_healthy
    due("mails", 1)
    assert lonely() == set()
    due("bulk", 1)
    assert lonely() == {"bulk"}
    tasks.nothing.using(queue_name="imports").enqueue()
    assert lonely() == {"bulk", "imports"}
    Queue("bulk").pause()
    assert lonely() == {"imports"}
    backend = settings.TASKS["default"]
    settings.TASKS = {"default": {**backend, "QUEUES": ["default", "mail", "named"]}}
    assert lonely() == {"imports", "named"}


def test_queues_of_other_programs_need_no_worker_of_ours() -> None:
    Queue("thumbnails").enqueue({"raw": True})
    factories.change(Queue("exports").enqueue({"raw": True}), run_at=at(-5_000))
    assert lonely() == {"default"}
    assert found() == {}


def test_a_queue_that_is_named_counts_with_all_its_jobs() -> None:
    factories.change(Queue("thumbnails").enqueue({"raw": True}), run_at=at(-5_000))
    report = look(also=["thumbnails", "empty"])
    named = [(finding.code, finding.queue) for finding in report.findings]
    assert named == [
        ("no-worker", "default"),
        ("no-worker", "empty"),
        ("no-worker", "thumbnails"),
        ("oldest-due", "thumbnails"),
    ]


def test_jobs_that_cannot_run_need_no_worker() -> None:
    due("delayed", -600)
    due("expired", 600, expires_at=at(-1))
    due("exhausted", 600, attempts=3)
    assert lonely() == {"default"}
    assert found() == {}


def test_a_stale_worker(worker: Entry) -> None:
    Entry("default", "killed", ["mail"]).write(0)
    assert found() == {}
    WorkerProcess.objects.filter(pk="killed").update(heartbeat_at=at(-STALE - 5), host="web7")
    due("mail", 1)
    (finding,) = found()["stale-worker"]
    assert finding.is_problem
    assert finding.worker_id == "killed"
    assert finding.seconds is not None
    assert finding.seconds >= STALE + 5
    assert "killed on web7 " in finding.message
    worker.delete()
    assert lonely() == {"default", "mail"}, "one that is stale serves nothing"


# -- jobs -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("worker")
def test_a_job_that_waits_for_too_long() -> None:
    due("mail", 250)
    due("bulk", 350)
    (finding,) = found()["oldest-due"]
    assert finding.is_problem
    assert finding.queue == "bulk"
    assert finding.seconds in range(350, 410)
    assert found(max_age=3_600) == {}
    assert {finding.queue for finding in found(max_age=60)["oldest-due"]} == {"mail", "bulk"}


@pytest.mark.usefixtures("worker")
def test_a_job_whose_worker_vanished_waits_too() -> None:
    job_id = due("mail", 5_000)
    assert Queue("mail").claim_one("vanished")
    assert found() == {}, "it runs"
    factories.change(job_id, claim_expires_at=at(-400))
    (finding,) = found()["oldest-due"]
    assert finding.seconds in range(400, 460)


@pytest.mark.usefixtures("worker")
def test_a_task_behind_jobs_of_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for age in range(5):
        factories.change(Queue("shared").enqueue({"raw": age}), run_at=at(-9_000 - age))
    assert found() == {}
    due("shared", 400)
    (finding,) = found()["oldest-due"]
    assert finding.seconds in range(400, 460)


@pytest.mark.usefixtures("worker")
def test_a_paused_queue_is_told_and_may_wait() -> None:
    due("mail", 5_000)
    Queue("mail").pause("1h", by="deploy")
    report = look()
    assert report.is_healthy
    (finding,) = report.findings
    assert (finding.code, finding.queue, finding.is_problem) == ("paused", "mail", False)
    assert finding.message.startswith("Queue mail is paused for ")
    assert finding.message.endswith(" s more, by deploy.")
    assert [each.is_paused for each in report.queues] == [False, True]
    Queue("mail").pause()
    assert look().findings[0].message == "Queue mail is paused until it is resumed."


@pytest.mark.usefixtures("worker")
def test_dead_letters_of_the_last_hour() -> None:
    for number in range(1, 4):
        factories.dead(number)
    DeadJob.objects.filter(pk=1).update(died_at=at(-3_700))
    (finding,) = found()["dead-letters"]
    assert finding.message == "Dead letters of the last hour: 2."
    assert look().is_healthy


# -- the database ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("offset", "message"), [(-60, "6. s ahead of"), (60, "5. s behind"), (-4, None), (4, None)]
)
def test_clocks_that_differ(offset: int, message: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.time
    monkeypatch.setattr(diagnosis.time, "time", lambda: clock() + offset)
    if message is None:
        assert found() == {}
        return
    (finding,) = found()["clock-skew"]
    assert finding.is_problem
    assert finding.message in {
        f"The clock of the database is {seconds} s {side} that of this host."
        for seconds in range(50, 70)
        for side in [message.partition(" s ")[2]]
    }


@pytest.mark.usefixtures("worker")
def test_a_sequence_that_lies_behind_is_raised(queue: Queue) -> None:
    highest = factories.result(queue.enqueue(1) + 1_000)
    (finding,) = found()["sequence"]
    assert not finding.is_problem
    assert str(highest) in finding.message
    assert found() == {}
    assert queue.enqueue(2) > highest


@pytest.mark.usefixtures("worker")
def test_it_writes_nothing(django_assert_num_queries: Callable[..., Any]) -> None:
    due("mail", 5_000)
    with django_assert_num_queries(40, exact=False) as captured:
        look()
    for query in captured:
        assert query["sql"].lstrip("( \n").upper().startswith(("SELECT", "WITH", "SHOW")), query["sql"]


@contextmanager
def unapplied(name: str) -> Iterator[None]:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("alkstore_django", name)
    try:
        yield
    finally:
        recorder.record_applied("alkstore_django", name)


@pytest.mark.usefixtures("worker")
def test_a_migration_that_has_not_run(settings: Any) -> None:
    assert health.pending_migrations("default") == []
    with unapplied("0001_initial"):
        (finding,) = found()["migrations"]
        assert finding.is_problem
        assert finding.message == "Migration 0001_initial has not run: run manage.py migrate."
        settings.MIGRATION_MODULES = {"alkstore_django": None}
        assert found() == {}


# -- file systems ---------------------------------------------------------------------------------------

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:40 / /srv/net rw,relatime shared:2 - nfs4 nas:/export rw,vers=4.2
31 30 8:2 / /srv/net/local rw - xfs /dev/sdb1 rw
32 21 0:41 / /srv/odd\\040name rw master:3 - fuse.sshfs there: rw
33 21 0:42 / /mnt/c rw - 9p drvfs rw
34 21 8:3 / /srv/twice rw - ext4 /dev/sdc1 rw
35 34 0:43 / /srv/twice rw - cifs //nas/share rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/db.sqlite3", None),
        ("/srv/net/db.sqlite3", "nfs4"),
        ("/srv/network/db.sqlite3", None),
        ("/srv/net/local/db.sqlite3", None),
        ("/srv/odd name/deep/db.sqlite3", "fuse.sshfs"),
        ("/mnt/c/project/db.sqlite3", "9p"),
        ("/srv/twice/db.sqlite3", "cifs"),
    ],
)
def test_network_file_systems(tmp_path: Path, path: str, kind: str | None) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert network_type(path, mounts) == kind
    assert network_type(path, tmp_path / "nothing") is None


def test_the_machine_of_the_tests(tmp_path: Path) -> None:
    assert network_type(tmp_path) is None


def test_a_schedule_that_stands_still() -> None:
    scheduling.foreign("theirs", "no cron")
    scheduling.made("fine", due=scheduling.db_now() + timedelta(hours=1))
    schedules.tick()
    (finding,) = found()["schedule"]
    assert finding.is_problem and "theirs stands still: " in finding.message
    schedules.pause("theirs")
    assert "schedule" not in found()


def test_schedules_that_nobody_fires() -> None:
    scheduling.made("s", due=scheduling.db_now() - timedelta(seconds=290))
    assert "scheduler" not in found()
    (finding,) = found(max_age=200)["scheduler"]
    assert finding.is_problem and finding.seconds is not None and 290 <= finding.seconds < 300
    schedules.pause("s")
    assert "scheduler" not in found(max_age=200)


def test_another_program_leads() -> None:
    soon = scheduling.db_now() + timedelta(hours=1)
    scheduling.made("portable", "0 3 * * *", due=soon)
    Lock.objects.create(name=LOCK, owner="3f2a", expires_at=now() + 60)
    assert "leader" not in found()
    for number in range(7):
        scheduling.made(f"s{number}", "0 0 1 * mon", due=soon)
    (finding,) = found()["leader"]
    assert not finding.is_problem and "s0, s1, s2, s3, s4 and 2 more" in finding.message
    Lock.objects.update(owner="alkstore-x")
    assert "leader" not in found()
