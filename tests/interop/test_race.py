"""Workers of both sides on one queue: every job is run once, by somebody."""

from __future__ import annotations

import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from alkstore_django.models import Run
from tests.interop import honker, tasks
from tests.interop.processes import stop, wait_for
from tests.interop.shared import SharedFile

JOBS = 400
OURS = ("alkworker", "--threads=2", "--interval=0.01")
THEIRS = ("-m", "honker", "worker", "tasks:database", "--concurrency=2")
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
ENQUEUE = """
import sys, tasks

for number in range(*map(int, sys.argv[2:])):
    tasks.record(sys.argv[1], number, 3)
"""


def test_two_workers_of_ours_and_one_of_honkers_run_each_job_once(shared: SharedFile, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for number in range(0, JOBS // 2):
        tasks.record.enqueue(str(log), number, 3)
    honker.run(ENQUEUE, log, JOBS // 2, JOBS, database=shared.path)
    shared.execute("UPDATE _honker_live SET run_at = unixepoch() + 3600")

    with ExitStack() as stack:
        workers = [stack.enter_context(shared.started(*OURS, **PIPES)) for _ in range(2)]
        workers.append(stack.enter_context(honker.started(*THEIRS, database=shared.path, **PIPES)))
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline()  # it says that it is up
        shared.execute("UPDATE _honker_live SET run_at = unixepoch()")
        wait_for(lambda: not shared.rows("SELECT 1 FROM _honker_live LIMIT 1"), "the queue to be empty")
        for worker in workers:
            stop(worker)

    runs = [line.split() for line in log.read_text().splitlines()]
    assert sorted(int(number) for *_, number in runs) == list(range(JOBS))
    by = Counter(side for side, *_ in runs)
    assert by.keys() == {"us", "honker"}
    assert len({worker for (worker,) in Run.objects.values_list("worker_id")}) == 2
    assert Run.objects.filter(status=Run.SUCCEEDED).count() == Run.objects.count() == by["us"]
    assert shared.rows("SELECT * FROM _honker_dead") == []
    stored = shared.rows("SELECT job_id, CAST(value AS INTEGER) AS number FROM _honker_results")
    assert sorted(row["number"] for row in stored) == list(range(JOBS))
