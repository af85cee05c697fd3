"""Fire what is due: for each schedule one transaction that moves it on and puts its jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import DatabaseError

from . import keys, observers, unique
from .catching_up import Plan, plan
from .conf import settings
from .envelopes import ENVELOPE, OURS, unseal
from .exceptions import UndecodablePayload
from .logs import get_logger
from .models import Arrival, Job, ScheduleRow
from .models.base import in_transaction, is_refused, let_go_after
from .payloads import decode, encode
from .schedule_rows import cron_for, rows
from .schedule_values import ALL
from .signals import boundaries_skipped
from .values import moment

logger = get_logger("alkstore_django.scheduler")

BATCH = 200
"""Schedules that are read at once."""

Jobs = Sequence[tuple[Arrival, str]]
"""When each came, and its payload."""

LONGEST = 500
"""Characters of a problem that are kept."""


class Outdated(Exception):
    """Somebody has changed the schedule since it was read."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A job that a schedule has put in; ``scheduled_for`` is the boundary that it stands for, in UTC."""

    schedule: str
    job_id: int
    queue: str
    scheduled_for: datetime


@dataclass(slots=True)
class Round:
    """What became of some schedules that were due. ``is_last``: no others were due."""

    firings: list[Firing] = field(default_factory=list)
    moved: int = 0
    """How many do not stand where they stood: they were fired, skipped or stopped."""
    is_last: bool = True


def fire_due(using: str, now: int | None = None, n: int = BATCH) -> Round:
    """Fire up to ``n`` schedules that are due at ``now``, by default the time of the database."""
    table = rows(using)
    if now is None:
        now = table.clock()
    due = table.due(now, n)
    result = Round(is_last=len(due) < n)
    for row in due:
        result.moved += _fire(using, row, now, result.firings)
    return result


def run_now(using: str, name: str) -> int | None:
    """``schedules.run_now``."""
    table = rows(using)

    def put_in() -> tuple[ScheduleRow, Arrival, str] | None:
        row = table.lock(name)
        if row is None:
            raise ValueError(f"There is no schedule {name!r}.")
        may_overlap = row.is_foreign or row.overlap
        if not may_overlap and table.is_running(name):
            return None
        texts = _texts(row, [None])
        (arrival,) = _put_in(using, row, texts)
        if arrival is None:
            return None
        if not may_overlap:
            table.note_run(name, arrival.id)
        return row, arrival, texts[0]

    done = in_transaction(using, put_in)
    if done is None:
        return None
    row, arrival, text = done
    _tell_of_jobs(row, [(arrival, text)])
    return arrival.id


def _fire(using: str, row: ScheduleRow, now: int, firings: list[Firing]) -> bool:
    """Whether the schedule does not stand where it stood, by what was done here."""
    try:
        return _fire_as_read(using, row, now, firings)
    except Outdated:
        stored = rows(using).row(row.name)
    if stored is None or stored == row or not _is_due(stored, now):
        return False
    return _fire(using, stored, now, firings)


def _is_due(row: ScheduleRow, now: int) -> bool:
    return row.enabled and not row.is_broken and row.next_fire_at <= now


def _fire_as_read(using: str, row: ScheduleRow, now: int, firings: list[Firing]) -> bool:
    """The same by what ``row`` says. Raises ``Outdated``, and nothing is written, if it is not true any more:
    whoever has changed a schedule hears of no job by its old definition."""
    try:
        found = _plan(row, now)
        texts = _texts(row, found.boundaries)
    except (ValueError, OverflowError, UndecodablePayload) as error:  # CronError is a ValueError
        return _stop(using, row, error)
    try:
        done = in_transaction(using, lambda: _write(using, row, found, texts))
    except DatabaseError as error:
        if not is_refused(using, error):
            raise
        let_go_after(using, error)
        return _stop(using, row, error)
    if done is None:
        return False
    fired, jobs = done
    firings += fired
    for firing in fired:
        logger.info(
            "Schedule %s put in job id=%s for %s.", row.name, firing.job_id, firing.scheduled_for.isoformat()
        )
    _tell_of_jobs(row, jobs)
    if skipped := len(found.boundaries) + found.skipped - len(fired):
        _tell_of_skipped(using, row, skipped, found)
    return True


def _plan(row: ScheduleRow, now: int) -> Plan:
    if isinstance(row.raw_payload, bytes):
        try:
            row.raw_payload.decode()
        except UnicodeDecodeError as error:
            raise UndecodablePayload(f"the payload is not UTF-8 text: {error}") from error
    catch_up = ALL if row.is_foreign else str(row.catch_up)
    return plan(cron_for(row), row.next_fire_at, now, catch_up, int(settings.CATCH_UP_GRACE))


def _write(
    using: str, row: ScheduleRow, found: Plan, texts: Sequence[str]
) -> tuple[list[Firing], Jobs] | None:
    """``None``, and nothing is written, if another scheduler was quicker. Raises ``Outdated``. What it takes
    was made before: the transaction is short."""
    table = rows(using)
    if not table.advance(row, int(found.next.timestamp())):
        return None
    boundaries = found.boundaries
    may_overlap = row.is_foreign or row.overlap
    if not may_overlap:
        boundaries = [] if table.is_running(row.name) else boundaries[:1]
    texts = texts[: len(boundaries)]
    arrivals = _put_in(using, row, texts)
    fired = [
        Firing(row.name, arrival.id, row.queue, boundary)
        for boundary, arrival in zip(boundaries, arrivals, strict=True)
        if arrival is not None
    ]
    jobs = [(arrival, text) for arrival, text in zip(arrivals, texts, strict=True) if arrival is not None]
    if not may_overlap and fired:
        table.note_run(row.name, fired[0].job_id)
    if row.owner is None:
        table.adopt(row.name)
    last = int(fired[-1].scheduled_for.timestamp()) if fired else None
    if not table.note_firing(row, last, len(found.boundaries) + found.skipped - len(fired)):
        raise Outdated
    return fired, jobs


def _texts(row: ScheduleRow, boundaries: Sequence[datetime | None]) -> list[str]:
    """The payloads of the jobs for these boundaries: what another program has written stays as it is."""
    if row.is_foreign:
        return [row.payload] * len(boundaries)
    return [stamped(row.payload, row.name, boundary) for boundary in boundaries]


def _put_in(using: str, row: ScheduleRow, texts: Sequence[str]) -> list[Arrival | None]:
    """Enqueue a job for each payload; ``None`` if another job has the key of its unique task."""
    if not texts:
        return []
    options: dict[str, int | None] = {
        "run_at": None,
        "delay": 0,
        "priority": row.priority,
        "expires": row.expires_s,
        "max_attempts": max(1, row.max_attempts),
    }
    if not row.is_foreign and (placed := _place(using, row, texts, options)) is not None:
        return placed
    return [*Job.objects.db_manager(using).enqueue_many(row.queue, texts, **options)]


def _place(
    using: str, row: ScheduleRow, texts: Sequence[str], options: dict[str, int | None]
) -> list[Arrival | None] | None:
    """The same for a unique task; ``None`` if it is none."""
    key = keys.of_payload(texts[0])
    if key is None:
        return None
    conflict = str(keys.options(unseal(texts[0]))["on_conflict"])
    calls = [unique.Call(key, text) for text in texts]
    placed = unique.add(using, row.queue, calls, conflict, options, list)
    return [each.arrival if each.created else None for each in placed]


def stamped(payload: str, name: str, boundary: datetime | None) -> str:
    """The payload of a job of a schedule: in our part of a task's envelope it says which boundary it stands
    for. What is no task has no room for that."""
    try:
        body: Any = decode(payload)
    except UndecodablePayload:
        return payload
    if not isinstance(body, dict) or not isinstance(body.get(ENVELOPE), dict):
        return payload
    ours = body.get(OURS)
    said: dict[str, Any] = {**ours} if isinstance(ours, dict) else {}
    said["schedule"] = name
    if boundary is not None:
        said["scheduled_for"] = int(boundary.timestamp())
    return encode({**body, OURS: said})


def _stop(using: str, row: ScheduleRow, error: Exception) -> bool:
    """Let a schedule that cannot be fired stand still, and nothing else. Raises ``Outdated``: it may have
    been corrected meanwhile, or be gone."""
    why = f"{error}"[:LONGEST]
    table = rows(using)

    def write() -> None:
        if table.lock(row.name) != row:
            raise Outdated
        table.adopt(row.name)
        table.change_options(row.name, problem=why, broken=row.cron_expr)

    in_transaction(using, write)
    logger.error("Schedule %s stands still until it is corrected: %s", row.name, why)
    return True


def _tell_of_jobs(row: ScheduleRow, jobs: Jobs) -> None:
    if not row.is_foreign:
        observers.tell_enqueued(jobs, row.queue, row.priority, max(1, row.max_attempts))


def _tell_of_skipped(using: str, row: ScheduleRow, count: int, found: Plan) -> None:
    since = moment(row.next_fire_at)
    logger.warning(
        "Schedule %s skipped %s boundaries from %s on; the next is %s.",
        row.name,
        count,
        "unknown times" if since is None else since.isoformat(),
        found.next.isoformat(),
    )
    boundaries_skipped.send_robust(
        None, schedule=row.name, count=count, since=since, next=found.next, using=using
    )
