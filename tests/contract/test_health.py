"""What a worker does to a database before it claims."""

from __future__ import annotations

import pytest

from alkstore_django import health
from alkstore_django.models import Job
from alkstore_django.queues import Queue
from tests import factories

pytestmark = pytest.mark.django_db


def test_new_ids_lie_above_every_known_one(queue: Queue) -> None:
    highest = factories.result(queue.enqueue(1) + 1_000)
    health.require_tables("default")
    assert queue.enqueue(2) > highest


@pytest.mark.usefixtures("sqlite")
def test_indexes_that_a_remade_table_has_lost(queue: Queue) -> None:
    """Claims name their index: without it every one of them would fail."""
    job_id = queue.enqueue(1)
    Job.objects.execute("DROP INDEX _honker_live_claim")
    Job.objects.execute("DROP INDEX _honker_live_pending_deadline")
    health.require_tables("default")
    job = queue.claim_one("w")
    assert job is not None and job.id == job_id
