"""Names are compared byte by byte, with one verdict on every database."""

from __future__ import annotations

from itertools import permutations

import pytest
from django.db import IntegrityError, transaction

from alkstore_django.models import Job, Lock
from alkstore_django.names import MAX_LENGTH
from alkstore_django.queues import Queue
from tests import factories
from tests.factories import where

pytestmark = pytest.mark.django_db

ALIKE = [
    "job",
    "Job",
    "jöb",
    "jo\u0308b",
    "ｊob",
    "jo\u200bb",
    "jоb",
    "job\u00ad",
    "j ob",
    "j  ob",
    "ss",
    "ß",
    "🙂",
    "🙃",
]


def test_names_that_look_alike_are_different_queues() -> None:
    made = {name: Queue(name).enqueue(name) for name in ALIKE}
    for name, job_id in made.items():
        assert [job.id for job in Queue(name).claim_batch("w", 99)] == [job_id], name
    assert len({row["queue"] for row in Job.objects.filter(pk__in=made.values()).values("queue")}) == len(
        ALIKE
    )


def test_names_that_look_alike_are_different_keys() -> None:
    for name in [*ALIKE, "job ", " job"]:  # the last two by another program
        Lock.objects.create(name=name, owner="me", expires_at=0)
    assert Lock.objects.count() == len(ALIKE) + 2
    assert Lock.objects.get(name="job ").name == "job "
    with pytest.raises(IntegrityError), transaction.atomic():
        Lock.objects.create(name="Job", owner="me", expires_at=0)


@pytest.mark.parametrize(("holder", "claimant"), list(permutations(["w", "W", "ẃ", "w\u0301"], 2)))
def test_workers_that_look_alike(queue: Queue, holder: str, claimant: str) -> None:
    job_id = queue.enqueue(1)
    job = queue.claim_one(holder)
    assert job is not None
    factories.change(job_id, worker_id=claimant)
    assert not queue.ack(job)
    factories.change(job_id, worker_id=holder)
    assert queue.ack(job)


def test_what_is_stored_with_a_space_at_its_end_is_another_queue() -> None:
    stored = factories.live("job  ")
    assert Queue("job").claim_one("w") is None
    assert Queue("job").get_job(stored) is None
    assert not Queue("job").cancel(stored)
    assert where(stored) == "live"


@pytest.mark.parametrize(
    "name", ["🙂" * MAX_LENGTH, "%s %(id)s", "'; DROP TABLE _honker_live; --", '"', "\\", "日本語"]
)
def test_any_name_that_is_allowed_works(name: str) -> None:
    queue = Queue(name)
    job_id = queue.enqueue(1)
    job = queue.claim_one(name)
    assert job is not None
    assert (job.id, job.queue, job.worker_id) == (job_id, name, name)
    assert queue.retry(job)
    assert queue.cancel(job_id)
    info = queue.get_job(job_id)
    assert info is not None
    assert info.queue == name
