"""Two hosts of workers on one server, and one of them is cut off: no packet passes, nobody is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from alkstore_django.models import Job, Run
from tests.app import tasks
from tests.failures import homes
from tests.failures.homes import Home
from tests.failures.hosts import Host
from tests.failures.load import BACK, TROUBLE
from tests.processes import Journal, Process, Workers
from tests.queue_state import dead, history, live, succeeded


class Fleet:
    """A worker on each of two hosts, ``near`` and ``far``."""

    def __init__(self, home: Home, hosts: list[Host], workers: Workers) -> None:
        self.home = home
        self.near_host, self.far_host = hosts
        self.workers = workers

    def start(self, host: Host, name: str, *arguments: object) -> Process:
        self.workers.within = host.within
        return self.workers.ready("--worker-id", name, *arguments, **self.home.reached(HOST=host.address))


@pytest.fixture
def fleet(request: pytest.FixtureRequest, workers: Workers) -> Iterator[Fleet]:
    with ExitStack() as stack:
        hosts = [stack.enter_context(Host(number)) for number in (1, 2)]
        home = homes.on(homes.SERVERS[request.param]([host.address for host in hosts]))
        stack.callback(home.server.remove)
        home.server.start()
        home.create()
        stack.callback(workers.reap)
        with home.opened():
            home.migrate()
            yield Fleet(home, hosts, workers)


@pytest.mark.parametrize("fleet", ["postgresql", "mysql"], indirect=True)
def test_cut_off_for_longer_than_a_lease(
    fleet: Fleet, workers: Workers, journal: Journal, gate: Path
) -> None:
    """Its jobs run on the other host, and what it says about them afterwards does not count."""
    lease = ("--visibility-timeout", 2, "--threads", 2)
    far = fleet.start(fleet.far_host, "far", *lease)
    jobs = {int(tasks.hold.enqueue(journal.path, f"job-{n}", str(gate)).id) for n in (1, 2)}
    workers.wait_until(lambda: len(journal.lines) == 2, "both run")
    near = fleet.start(fleet.near_host, "near", *lease)
    fleet.far_host.pull_out()
    workers.wait_until(lambda: "near" in holders(), "one of its jobs runs on the other host")
    gate.touch()
    workers.wait_until(lambda: not live(), "both are done")
    workers.wait_until(lambda: len(journal.lines) == 8, "also where nobody is told of it")
    fleet.far_host.plug_in()
    far.wait_for(r"the claim of attempt 1 was lost; its outcome does not count", 2)

    assert near.stop() == 0
    more = {int(tasks.write.enqueue(journal.path, f"more-{n}").id) for n in range(20)}
    workers.wait_until(lambda: not live(), "the host that was cut off goes on")
    assert succeeded() == jobs | more and not dead()
    assert sorted(journal.lines[:8]) == sorted(
        [f"{what} job-{n}" for what in ("start", "end") for n in (1, 2)] * 2
    )
    for job_id in jobs:
        run = Run.objects.get(pk=job_id)
        assert (run.worker_id, run.attempts, history(job_id)) == ("near", 2, ["lost"])
    assert far.stop() == 0
    assert far.count("Traceback") == near.count("Traceback") == near.count(TROUBLE) == 0


@pytest.mark.parametrize("fleet", ["postgresql", "mysql"], indirect=True)
def test_a_server_that_is_gone_without_a_word(fleet: Fleet, workers: Workers, journal: Journal) -> None:
    """The kernel would go on trying for a quarter of an hour; the worker notices in half a minute."""
    far = fleet.start(fleet.far_host, "far")
    fleet.far_host.pull_out()
    workers.wait_until(lambda: far.count(TROUBLE), "it notices", patience=60)
    tasks.write.enqueue(journal.path, "job")
    fleet.far_host.plug_in()
    far.wait_for(BACK)
    workers.wait_until(lambda: not live(), "it goes on")
    assert far.count(TROUBLE) == 1
    assert far.stop() == 0


def holders() -> list[str | None]:
    return list(Job.objects.filter(state="processing").values_list("worker_id", flat=True))
