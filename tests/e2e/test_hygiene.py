"""Whatever a task leaves behind, the next one in its thread finds a clean Django."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from alkstore_django.compat import TaskResultStatus
from tests.app import messes
from tests.e2e.connections import SETTINGS
from tests.processes import Workers
from tests.queue_state import dead, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

MESSES = [
    messes.leave_transaction_begun_by_hand,
    messes.leave_transaction_open,
    messes.leave_transaction_broken,
    messes.leave_transaction_closed,
    messes.leave_autocommit_off,
    messes.leave_language_and_zone,
    messes.leave_driver_closed,
    messes.leave_driver_closed_in_transaction,
    messes.leave_context,
    messes.leave_environment,
]
CHANGED = (
    r"changed what belongs to the whole process: os.environ \(ALKSTORE_MESS, HOME\); the working directory; "
    r"the filters of warnings. Put back."
)
CLEAN = {
    "autocommit": True,
    "atomic": False,
    "language": "en-us",
    "time zone": "UTC",
    "groups": [],
    "precision": 28,
    "variable": "as it was",
    "environ": "as it was",
    "home": True,
    "directory": True,
    "filters": True,
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_next_task_finds_everything_clean(workers: Workers, settings: str) -> None:
    """Also when connections are kept from one task to the next."""
    looks = []
    with transaction.atomic():
        for mess in MESSES:
            arguments = () if "name" not in mess.func.__annotations__ else ("left behind",)
            mess.enqueue(*arguments)
            looks.append(messes.surroundings.enqueue())
    worker = workers.start("--threads", 1, "--batch", DJANGO_SETTINGS_MODULE=settings)
    assert worker.join() == 0

    assert not live() and not dead()
    found = []
    for result in looks:
        result.refresh()
        assert (result.status, result.errors) == (TaskResultStatus.SUCCESSFUL, [])
        found.append(result.return_value)
    assert found == [CLEAN] * len(MESSES)
    assert not Group.objects.exists()
    assert worker.count("WARNING A task left a transaction open on 'default': rolled back.") == 5
    assert worker.count("WARNING The task tests.app.messes.leave_environment " + CHANGED) == 1


@pytest.mark.parametrize(
    "mess", [messes.leave_context_in_the_loop, messes.leave_environment_in_the_loop, messes.leave_environment]
)
@pytest.mark.parametrize("look", [messes.surroundings, messes.surroundings_of_a_coroutine])
def test_coroutines_leave_and_find_everything_clean(workers: Workers, mess: Any, look: Any) -> None:
    worker = workers.start()
    for task in (mess, look):
        result = task.enqueue()
        workers.wait_until(lambda result=result: int(result.id) in succeeded(), "it is done")
    result.refresh()
    assert result.return_value == CLEAN
    assert worker.stop() == 0
    assert worker.count(CHANGED) == ("environment" in mess.func.__name__)


def sessions() -> int:
    """How many sessions the test database has, our own included."""
    table, name, this = {
        "postgresql": ("pg_stat_activity", "datname", "current_database()"),
        "mysql": ("information_schema.processlist", "db", "DATABASE()"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE {name} = {this}")
        return int(cursor.fetchone()[0])


@pytest.mark.only("postgresql", "mysql")
@pytest.mark.parametrize("settings", SETTINGS)
def test_connections_stay_few(workers: Workers, settings: str) -> None:
    """One for each thread, one for the clerk, one for the scheduler; twice as many threads while those that
    were closed end."""
    with transaction.atomic():
        jobs = {int(messes.surroundings.enqueue().id) for _ in range(300)}
    seen = []
    workers.start(DJANGO_SETTINGS_MODULE=settings)
    workers.wait_until(lambda: seen.append(sessions()) or not live(), "all is done")
    assert succeeded() == jobs
    assert 1 < max(seen) <= 2 * (4 + 1) + 2
    if settings == "tests.settings":
        workers.wait_until(lambda: sessions() == 3, "those of the clerk, the scheduler and ours are left")
