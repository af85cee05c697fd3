"""Those who cancel, those who wait and workers, about the same tasks at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import transaction

from alkstore_django.models import Run
from alkstore_django.queues import Queue
from tests.app import tasks
from tests.concurrency.test_races import Race
from tests.processes import Journal, Workers
from tests.queue_state import dead, live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)

TASKS = 400


def test_each_task_is_run_or_cancelled_and_everybody_knows(
    workers: Workers, journal: Journal, tmp_path: Path
) -> None:
    with transaction.atomic():
        ids = [int(tasks.write.enqueue(journal.path, str(n), 0.01).id) for n in range(TASKS)]
    argument = ",".join(map(str, ids))
    race = Race(workers, tmp_path, Queue("default"), isolation="")
    race.add("cancel", 1, ",".join(map(str, ids[::2])))
    race.add("cancel_in_bulk", 1, argument)
    race.add("wait", 2, argument)
    Queue("default").pause()  # nobody may be through before the others begin
    for _ in range(2):
        workers.ready("--threads", 2)
    race.start()
    Queue("default").resume()
    cancelled = race.achieved("cancel") + race.achieved("cancel_in_bulk")
    seen = race.achieved("wait")
    assert not live() and not dead()

    assert len(set(cancelled)) == len(cancelled)  # each by one of them
    assert set(Run.objects.filter(status=Run.CANCELLED).values_list("pk", flat=True)) == set(cancelled)
    assert succeeded() == set(ids) - set(cancelled)
    assert sorted(seen) == sorted([*succeeded(), *succeeded()])
    assert {str(number) for number, job_id in enumerate(ids) if job_id in succeeded()} <= set(journal.keys)
    assert cancelled and seen, "one side did it all: nothing was shown"
    assert [worker.stop() for worker in workers.processes if worker.is_running] == [0, 0]
