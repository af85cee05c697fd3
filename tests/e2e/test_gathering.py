"""Outcomes of short tasks gather for a moment, and never for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app import tasks
from tests.processes import Journal, Workers
from tests.queue_state import live, succeeded

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_ended_before_a_long_task_is_settled_while_it_runs(
    workers: Workers, journal: Journal, gate: Path
) -> None:
    """They were claimed together, by one thread, for which more waits."""
    before = {int(result.id) for result in tasks.nothing.enqueue_many([()] * 205)}
    tasks.hold.enqueue(journal.path, "long", str(gate))
    tasks.nothing.enqueue_many([()] * 50)
    workers.start("--threads", 1)
    workers.wait_until(lambda: journal.lines == ["start long"], "the long one runs")
    workers.wait_until(lambda: before <= succeeded(), "all before it are settled")
    gate.touch()
    workers.wait_until(lambda: not live(), "everything is done")
