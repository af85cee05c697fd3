"""Workers that delete what is over: one of them at a time, whatever becomes of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
from django.db import connection

from alkstore_django.election import LOCK
from alkstore_django.models import DeadJob, Lock, Notification, Result, Run
from tests import factories
from tests.app import tasks
from tests.contract.retaining import DAY, dead, notification
from tests.e2e.test_outage import BACK, end_sessions
from tests.factories import at
from tests.processes import Journal, Process, Workers
from tests.queue_state import live

pytestmark = pytest.mark.django_db(transaction=True)

DELETED = "Deleted what was over: results"


@pytest.fixture(autouse=True)
def nobody_is_at_it() -> Iterator[None]:
    yield
    Lock.objects.all().delete()


def maintaining(workers: Workers, *arguments: object, **environment: str) -> Process:
    """A worker whose maintenance begins at once."""
    found = workers.run(
        "-m", "tests.e2e.maintaining", "alkworker", "--skip-checks", *arguments, **environment
    )
    found.wait_for(" serves ")
    return found


def elected(workers: Workers, *arguments: object) -> Process:
    """A worker that has been chosen."""
    worker = maintaining(workers, *arguments, "--worker-id", f"worker-{len(workers.processes)}")
    workers.wait_until(lambda: owner() == f"worker-{len(workers.processes) - 1}", "it is chosen")
    return worker


def owner() -> str:
    return "".join(Lock.objects.filter(pk=LOCK, expires_at__gt=at(0)).values_list("owner", flat=True))


def end_lock() -> None:
    """As it ends by itself, up to a minute later."""
    factories.change(LOCK, model=Lock, expires_at=at(0))  # type: ignore[arg-type]


def results(count: int = 10, first: int = 1_000_000) -> None:
    """Whose time is over, and of no job that a worker runs here."""
    Result.objects.bulk_create(
        [Result(job_id=first + n, value="1", expires_at=at(-1)) for n in range(count)], batch_size=1_000
    )


def is_clean() -> bool:
    return not over()


def over() -> int:
    return Result.objects.filter(expires_at__lte=at(0)).count()


def test_one_of_two(workers: Workers, journal: Journal) -> None:
    first = elected(workers)
    second = maintaining(workers)
    for number in range(3):
        results()
        tasks.write.enqueue(journal.path, f"job {number}")
        workers.wait_until(is_clean, "the results are gone")
    workers.wait_until(lambda: first.count(DELETED) >= 3 and not live(), "all is done")
    assert second.count(DELETED) == 0
    assert sorted(journal.keys) == ["job 0", "job 1", "job 2"]
    assert first.stop() == 0
    results()
    second.wait_for(DELETED)
    assert second.stop() == 0 and is_clean()
    assert not Lock.objects.filter(pk=LOCK).exists()


def test_a_killed_one_is_followed(workers: Workers) -> None:
    """In the middle of a pass, which another begins anew."""
    for _ in range(20):  # on a busy machine it may be through before it is killed: then once more
        first = elected(workers)
        results(8_000)
        workers.wait_until(lambda: over() < 7_900, "it is at it")
        first.reap()
        if over():
            break
        end_lock()
    else:
        raise AssertionError("it was through already: nothing was shown")
    second = maintaining(workers)
    end_lock()
    workers.wait_until(is_clean, "the other goes on", patience=60)
    assert second.stop() == 0


def test_a_frozen_one_is_followed(workers: Workers) -> None:
    first = elected(workers)
    first.freeze()
    end_lock()
    second = maintaining(workers)
    results()
    second.wait_for(DELETED)
    first.send(signal.SIGCONT)
    results()
    workers.wait_until(is_clean, "one of them goes on")
    assert (first.stop(), second.stop()) == (0, 0)


def test_what_it_deletes(workers: Workers) -> None:
    """The settings of the project's decide; what a worker leaves itself is kept for its time."""
    results()
    dead(101, 200 * DAY)
    dead(102, 100 * DAY)
    notification(100 * DAY)
    result = tasks.add.enqueue(1, 2)
    worker = maintaining(workers)
    worker.wait_for(DELETED)
    workers.wait_until(lambda: not live(), "the job is done")
    assert worker.stop() == 0
    assert set(DeadJob.objects.values_list("pk", flat=True)) == {102}
    assert Notification.objects.exists() == (connection.vendor == "sqlite")
    assert set(Run.objects.values_list("pk", flat=True)) == {int(result.id)}
    assert tasks.add.get_result(result.id).return_value == 3


def test_those_that_leave_it_to_others(workers: Workers, journal: Journal) -> None:
    results()
    tasks.write.enqueue(journal.path, "done")
    worker = maintaining(workers, "--no-maintenance")
    workers.wait_until(lambda: not live(), "the job is done")
    batch = workers.run("-m", "tests.e2e.maintaining", "alkworker", "--skip-checks", "--batch")
    assert (batch.join(), worker.stop()) == (0, 0)
    assert over() == 10
    assert not Lock.objects.exists()


def test_a_worker_whose_threads_are_busy(workers: Workers, journal: Journal, gate: object) -> None:
    tasks.hold.enqueue(journal.path, "held", str(gate))
    worker = maintaining(workers, "--threads", 1)
    workers.wait_until(lambda: journal.lines == ["start held"], "the task runs")
    results()
    worker.wait_for(DELETED)
    assert live() == 1


@pytest.mark.only("postgresql", "mysql")
def test_an_outage(workers: Workers) -> None:
    worker = elected(workers)
    end_sessions()
    worker.wait_for(BACK)
    results()
    worker.wait_for(DELETED)
    assert worker.stop() == 0


def test_by_hand_beside_it(workers: Workers) -> None:
    results(5_000)
    worker = maintaining(workers)
    command = workers.start("--json", command="alkprune")
    assert command.join() == 0
    workers.wait_until(is_clean, "all is gone")
    (found,) = [each for each in json.loads(command.output)["kinds"] if each["kind"] == "results"]
    assert 0 <= found["deleted"] <= 5_000
    assert worker.stop() == 0


def test_ctrl_c(workers: Workers) -> None:
    """In a terminal, where it shows how far it is."""
    results(20_000)
    arguments = ("alkprune", "--skip-checks", "--only=results", "--batch-size=5")
    command = workers.run("-m", "tests.terminal", "-m", "django", *arguments)
    workers.wait_until(lambda: Result.objects.count() < 19_900, "it is at it")
    command.send(signal.SIGUSR1)
    assert command.join() == 130
    assert " of 20,000" in command.output
    table = command.output.rpartition("deleted")[2]
    deleted = int(table.split("until it ends")[1].split()[0].replace(",", ""))
    assert 100 < deleted == 20_000 - Result.objects.count()
    assert "Interrupted: the rest is as it was." in command.output
