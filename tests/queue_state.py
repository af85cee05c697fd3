"""What the tables say, in the words of the tests."""

from __future__ import annotations

from alkstore_django.models import Attempt, DeadJob, Job, Run


def live(**conditions: object) -> int:
    """How many live jobs there are."""
    return Job.objects.filter(**conditions).count()


def succeeded() -> set[int]:
    return set(Run.objects.filter(status=Run.SUCCEEDED).values_list("job_id", flat=True))


def dead() -> dict[int, str]:
    """The last error of each dead letter."""
    return dict(DeadJob.objects.values_list("id", "last_error"))


def history(job_id: int) -> list[str]:
    """The kinds of what happened to a job, oldest first."""
    return list(Attempt.objects.of_job(job_id).values_list("kind", flat=True))


def lost() -> list[tuple[int, str]]:
    """Job and worker of each attempt whose worker vanished."""
    return list(Attempt.objects.filter(kind=Attempt.LOST).values_list("job_id", "worker_id"))
