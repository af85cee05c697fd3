"""The tables, whoever makes them first: honker's, with one column more, and nothing of theirs is lost."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command

from alkstore_django.queues import Queue
from tests.interop import honker
from tests.interop.processes import PATIENCE
from tests.interop.shared import SharedFile
from tests.interop.structure import contents, names, structure, with_claimed_at

OF_OTHERS = ("_honker_", "alkstore_", "auth_", "django_", "sqlite_")

FILL = """
import honker, json, sys

database = honker.open(sys.argv[1])
emails = database.queue("emails", max_attempts=2)
for worker in ("w1", "w2"):
    dead = emails.enqueue({"to": "\\u00e9\\"x"}, priority=9) if worker == "w1" else dead
    emails.claim_one(worker).retry(0, f"boom of {worker}")
emails.enqueue({"p": 2}, delay=60, priority=5, expires=3600)
failed = emails.enqueue({"c": 1}, priority=8)
emails.claim_one("w3").fail("bad")
acked = emails.enqueue({"a": 1}, priority=7)
job = emails.claim_one("w4")
emails.save_result(acked, {"r": [1, 2]}, ttl=3600)
job.ack()
held = emails.enqueue({"wait": 1}, priority=6)
emails.claim_one("w5")
emails.enqueue("last")
database.lock("nightly", ttl=3600, owner="me").__enter__()
database.try_rate_limit("api", limit=2, per=60)
scheduler = honker.Scheduler(database)
scheduler.add(name="nightly", queue="emails", schedule=honker.crontab("0 3 * * *"), payload={"k": 1})
scheduler.add(name="five", queue="emails", schedule=honker.every_s(5), expires=30, max_attempts=7)
scheduler.pause("five")
stream = database.stream("orders")
for number in (1, 2):
    stream.publish({"id": number}, key=f"k{number}")
stream.save_offset("mailer", 1)
with database.transaction() as transaction:
    transaction.notify("orders", {"id": 42})
print(json.dumps({"dead": [dead, failed], "held": held}))
"""

OPEN = "import honker, sys; honker.open(sys.argv[1]).queue('emails')"


@pytest.fixture
def filled(empty: SharedFile) -> dict[str, Any]:
    """What honker did to a file that it made: all its tables have rows."""
    return dict(json.loads(honker.run(FILL, empty.path)))


def migrate(*arguments: str) -> None:
    call_command("migrate", *arguments, verbosity=0)


def rows_with_claimed_at(path: Path) -> dict[str, Any]:
    before = contents(path)
    live = [row | {"claimed_at": None} for row in before["_honker_live"]]
    return before | {"_honker_live": live}


def test_we_migrate_an_empty_file_and_honker_would_have_made_the_same(
    shared: SharedFile, tmp_path: Path
) -> None:
    honker.run(OPEN, tmp_path / "honker.db")
    assert structure(shared.path) == with_claimed_at(structure(tmp_path / "honker.db"))
    assert [name for name in names(shared.path) if not name.startswith(OF_OTHERS)] == []


def test_honker_made_the_file_and_we_add_one_column_only(empty: SharedFile) -> None:
    honker.run(OPEN, empty.path)
    theirs = structure(empty.path)
    migrate()
    assert structure(empty.path) == with_claimed_at(theirs)


def test_honker_filled_the_file_and_our_migrate_loses_nothing(
    empty: SharedFile, filled: dict[str, Any]
) -> None:
    before = rows_with_claimed_at(empty.path)
    assert all(before.values()), "a table without rows proves nothing"
    migrate()
    assert contents(empty.path) == before
    models = apps.get_app_config("alkstore_django").get_models()
    counted = {model._meta.db_table: len(model._default_manager.all()) for model in models}
    expected = {table: len(rows) for table, rows in before.items() if table in counted}
    assert len(expected) == 9
    assert {table: counted[table] for table in expected} == expected


def test_honker_has_the_file_open_while_we_migrate_and_goes_on(
    empty: SharedFile, honker_process: honker.HonkerProcess
) -> None:
    with honker_process.queue(empty.path, "emails") as theirs:
        job_id = theirs.enqueue({"to": "customer"})
        migrate()
        assert theirs.claim_one("h")["id"] == job_id
        assert theirs.query("SELECT state FROM _honker_jobs") == [{"state": "processing"}]
        assert theirs.ack(job_id, "h")


def test_honker_filled_the_file_and_we_work_on_it(empty: SharedFile, filled: dict[str, list[int]]) -> None:
    given = next(
        row["seq"] for row in contents(empty.path)["sqlite_sequence"] if row["name"] == "_honker_live"
    )
    migrate()
    emails = Queue("emails")
    last = emails.claim_one("us")  # the only one that waits and is due
    assert last is not None
    assert last.payload == "last"
    assert emails.ack(last)
    assert emails.requeue(filled["dead"]) == 2
    assert [job.id for job in emails.claim_batch("us", 5)] == sorted(filled["dead"])
    assert emails.enqueue("next") == given + 1
    held = emails.get_job(filled["held"])
    assert held is not None
    assert (held.state, held.worker_id) == ("processing", "w5")


def test_an_older_honker_made_the_file_and_we_add_what_is_missing(empty: SharedFile) -> None:
    honker.run(OPEN, empty.path)
    today = structure(empty.path)
    with closing(sqlite3.connect(empty.path)) as connection:
        for column in ("enabled", "max_attempts"):  # honker itself adds them to a file that lacks them
            connection.execute(f"ALTER TABLE _honker_scheduler_tasks DROP COLUMN {column}")
        connection.execute(
            "INSERT INTO _honker_scheduler_tasks (name, queue, cron_expr, payload, next_fire_at) "
            "VALUES ('nightly', 'emails', '0 3 * * *', '{}', 1)"
        )
        connection.commit()
    migrate()
    [row] = contents(empty.path)["_honker_scheduler_tasks"]
    assert (row["enabled"], row["max_attempts"]) == (1, 3)
    found = structure(empty.path)
    assert found["_honker_scheduler_tasks"]["table_info"] == today["_honker_scheduler_tasks"]["table_info"]
    assert found.keys() == today.keys()
    honker.run(OPEN, empty.path)
    assert structure(empty.path) == found


def test_a_later_honker_made_the_file_and_we_change_nothing(empty: SharedFile) -> None:
    honker.run(OPEN, empty.path)
    with closing(sqlite3.connect(empty.path)) as connection:  # honker-spec 0: what that version does
        connection.execute("ALTER TABLE _honker_live ADD COLUMN claimed_at INTEGER")
    theirs = structure(empty.path)
    migrate()
    assert structure(empty.path) == theirs


def test_honker_filled_a_file_that_we_have_not_migrated_and_our_commands_leave_it_alone(
    empty: SharedFile, filled: dict[str, Any]
) -> None:
    before, found = contents(empty.path), names(empty.path)
    for command in (("alkworker", "--batch"), ("alkstatus",)):
        with empty.started(*command, stderr=subprocess.PIPE) as process:
            _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, "migrate" in errors) == (1, True)
    assert (contents(empty.path), names(empty.path)) == (before, found)


def test_we_made_the_file_and_honker_changes_nothing_in_its_structure(
    shared: SharedFile, migrated: Path, honker_process: honker.HonkerProcess
) -> None:
    emails = Queue("emails")
    assert emails.ack_batch([emails.claim_one("us") for _ in emails.enqueue_many(["one", "two"])]) == 2
    with honker_process.queue(shared.path, "emails", max_attempts=2) as theirs:
        acked, failed = theirs.enqueue("a"), theirs.enqueue("f")
        assert [job["id"] for job in theirs.claim_batch("h", 2)] == [acked, failed]
        assert theirs.ack(acked, "h")
        assert theirs.fail(failed, "h", "no")
    assert structure(shared.path) == structure(migrated)
    assert names(shared.path) == names(migrated)

    job_id = emails.enqueue("ours")
    job = emails.claim_one("us")
    assert job is not None
    assert (job.id, job_id) == (failed + 1, failed + 1)
    assert emails.ack(job)
    assert emails.requeue([failed]) == 1


def test_honker_filled_the_file_and_our_migration_back_and_forth_keeps_its_rows(
    empty: SharedFile, filled: dict[str, Any]
) -> None:
    migrate()
    before, found = contents(empty.path), structure(empty.path)
    migrate("alkstore_django", "zero")
    assert contents(empty.path) == before
    assert not any(name.startswith("alkstore_") for name in names(empty.path))
    migrate("alkstore_django")
    assert (contents(empty.path), structure(empty.path)) == (before, found)


def test_we_take_our_empty_tables_back_and_honker_makes_its_own(shared: SharedFile, tmp_path: Path) -> None:
    migrate("alkstore_django", "zero")
    assert not any("honker" in name for name in names(shared.path))
    honker.run(OPEN, shared.path)
    honker.run(OPEN, tmp_path / "honker.db")
    assert structure(shared.path) == structure(tmp_path / "honker.db")
