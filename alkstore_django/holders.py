"""Who holds the key of a unique task: the job that took it last, if that is still what the key asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import inspection
from .inspection import JobInfo
from .keys import QUEUED, Key, of_payload
from .models import Job, Run, Seen


def held(using: str, seen: Mapping[str, Seen]) -> dict[str, JobInfo]:
    """Of keys as they were seen, those that are held, with their jobs: live ones, and done ones of keys
    that are held for a time."""
    found: dict[str, JobInfo] = {}
    for digest, each in seen.items():
        key = _key(digest, each.job.payload) if each.job else None
        if each.job and key and _is_held(using, key, each):
            found[digest] = inspection.of_claim(each.job, is_running=each.is_running)
    others = [each for digest, each in seen.items() if each.in_time and digest not in found]
    return found | _done(using, others)


def _is_held(using: str, key: Key, seen: Seen) -> bool:
    if key.lasts == QUEUED:
        return seen.has_future and not seen.is_running
    if key.seconds is not None and not seen.in_time:
        return False
    # A claim that lapsed in the last attempt is as good as dead, unless an atomic run has locked it.
    return seen.has_future or (
        seen.is_running and not Job.objects.db_manager(using).lock_many_at_once([seen.job_id])
    )


def _done(using: str, seen: Iterable[Seen]) -> dict[str, JobInfo]:
    """Jobs that have succeeded: the others, and what another program ended, have given up the key."""
    wanted = {each.job_id: each.digest for each in seen}
    runs = Run.objects.using(using).filter(pk__in=wanted, status=Run.SUCCEEDED) if wanted else ()
    return {wanted[run.pk]: inspection.of_run(run) for run in runs if _key(wanted[run.pk], run.payload)}


def _key(digest: str, payload: str | bytes) -> Key | None:
    """The key in the payload of its job; ``None`` for a job of somebody else's that came by its id."""
    key = of_payload(payload)
    return key if key and key.digest == digest else None
