"""Tasks of one project in two databases, each with a worker of its own."""

from __future__ import annotations

from typing import Any

import pytest

from alkstore_django.compat import TaskResultStatus
from tests.app import tasks
from tests.e2e import two_databases
from tests.processes import Workers

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture(autouse=True)
def two(settings: Any, workers: Workers) -> None:
    settings.TASKS = two_databases.TASKS
    workers.environment["DJANGO_SETTINGS_MODULE"] = "tests.e2e.two_databases"


def test_each_worker_runs_what_is_in_its_database(workers: Workers) -> None:
    here, there = tasks.add.enqueue(1, 2), tasks.add.using(backend="far").enqueue(3, 4)
    workers.ready("--database", "other")
    assert there.wait(60).return_value == 7
    here.refresh()
    assert here.status == TaskResultStatus.READY
    workers.ready("--database", "default")
    assert here.wait(60).return_value == 3
    assert (here.backend, there.backend) == ("default", "far")


def test_a_worker_has_to_be_told_which(workers: Workers) -> None:
    worker = workers.start("--batch")
    assert worker.join() == 1
    assert "TASKS names several databases (default, other): choose one with --database." in worker.output


def test_both_at_once(workers: Workers) -> None:
    """With the same ids, and waited for together."""
    for database in ("default", "other"):
        workers.ready("--database", database)
    results = [tasks.add.using(backend=alias).enqueue(1, 1) for alias in ("default", "far") * 5]
    assert [result.wait(60).return_value for result in results] == [2] * 10
