"""``ScheduledTask``: honker's schedule rows; ``ScheduleOptions``: what honker has no column for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import models
from django.utils.translation import gettext_lazy as _

from alkstore_django.sql import tables
from alkstore_django.sql.scheduling import OPTIONS, ROW

from .base import SQLManager, chunks, placeholders
from .fields import LenientTextField, NameField, number, readable

FOREIGN = "foreign"
"""The owner of a row that another program made, or changed."""

ADOPTED: dict[str, Any] = {
    **dict.fromkeys(("timezone", "catch_up", "expression", "canonical", "problem"), ""),
    **{"owner": FOREIGN, "last_fire_at": None, "skipped": 0, "overlap": True},
    **{"broken": None, "withdrawn": False, "declared_enabled": True},
}
"""The options of a row of another program."""


class ScheduleRow(NamedTuple):
    """A schedule as stored, with its options beside it: ``None`` where it has none. ``raw_payload`` and
    ``raw``, all of it, are as the driver gave them; times are Unix seconds."""

    name: str
    queue: str
    cron_expr: str
    raw_payload: str | bytes
    priority: int
    expires_s: int | None
    next_fire_at: int
    enabled: bool
    max_attempts: int
    timezone: str | None = None
    catch_up: str | None = None
    owner: str | None = None
    expression: str | None = None
    canonical: str | None = None
    last_fire_at: int | None = None
    skipped: int = 0
    overlap: bool = True
    problem: str = ""
    broken: str | None = None
    withdrawn: bool = False
    declared_enabled: bool = True
    raw: tuple[Any, ...] = ()

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> ScheduleRow:
        raw = tuple(row)
        name, queue, cron_expr, payload, priority, expires, next_fire_at, enabled, attempts, *options = row
        zone, catch_up, owner, expression, canonical, fired, skipped, overlap, problem, *more = options
        broken, withdrawn, declared = more
        return cls(
            name=readable(name) or "",
            queue=readable(queue) or "",
            cron_expr=readable(cron_expr) or "",
            raw_payload=payload,
            priority=number(priority) or 0,
            expires_s=number(expires),
            next_fire_at=number(next_fire_at) or 0,
            enabled=enabled == 1,
            max_attempts=number(attempts) or 0,
            timezone=readable(zone),
            catch_up=readable(catch_up),
            owner=readable(owner),
            expression=readable(expression),
            canonical=readable(canonical),
            last_fire_at=fired,
            skipped=skipped or 0,
            overlap=True if overlap is None else bool(overlap),
            problem=readable(problem) or "",
            broken=readable(broken),
            withdrawn=bool(withdrawn),
            declared_enabled=True if declared is None else bool(declared),
            raw=raw,
        )

    @property
    def is_foreign(self) -> bool:
        """Whether it is read in honker's dialect: its options do not speak of the expression that it has."""
        return self.owner in (None, FOREIGN) or self.canonical != self.cron_expr

    @property
    def is_broken(self) -> bool:
        return self.broken is not None and self.broken == self.cron_expr

    @property
    def columns(self) -> dict[str, Any]:
        """By name what is stored, to the byte; once it is adopted, if it has no options yet."""
        stored = dict(zip((*ROW, *OPTIONS), self.raw, strict=True))
        return stored if self.owner is not None else {**stored, **ADOPTED}

    @property
    def payload(self) -> str:
        return readable(self.raw_payload) or ""


class ScheduleManager(SQLManager):
    """Honker's table and ours together. Whoever writes has opened a transaction."""

    def rows(self) -> list[ScheduleRow]:
        return self._rows(self.dialect.schedules)

    def row(self, name: str) -> ScheduleRow | None:
        return next(iter(self._rows(self.dialect.schedule, name=name)), None)

    def named(self, names: Sequence[str]) -> dict[str, ScheduleRow]:
        """Those that are there, by name; each with the options that it had at the same time."""
        found: dict[str, ScheduleRow] = {}
        for chunk in chunks(names):
            marks, params = placeholders(chunk)
            found |= {row.name: row for row in self._rows(self.dialect.named_schedules(marks), **params)}
        return found

    def written(self, name: str) -> ScheduleRow:
        """What this transaction has written, or locked: until it ends nobody can delete it."""
        (row,) = self._rows(self.dialect.schedule, name=name)
        return row

    def lock(self, name: str) -> ScheduleRow | None:
        """Keep others from changing and firing it until this transaction ends."""
        self.fetch(self.dialect.lock_schedule, {"name": name})
        return next(iter(self._rows(self.dialect.locked_schedule, name=name)), None)

    def due(self, now: int, n: int) -> list[ScheduleRow]:
        return self._rows(self.dialect.due_schedules, now=now, n=n)

    def broken(self) -> list[ScheduleRow]:
        return self._rows(self.dialect.broken_schedules)

    def soonest(self) -> tuple[int | None, float]:
        """When the next one is due, and what time it is, by the database's clock."""
        soonest, clock = self.fetch(self.dialect.soonest_schedule)[0]
        return number(soonest), float(clock)

    def clock(self) -> int:
        """Unix seconds by the database's clock."""
        return int(self.fetch(self.dialect.clock)[0][0])

    # -- writes -----------------------------------------------------------------------------------

    def add(self, row: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
        """``False``, and nothing is written, if there is one of that name."""
        if not self.execute(self.dialect.insert_schedule, dict(row)):
            return False
        self.execute(self.dialect.save_options, dict(options))
        return True

    def change(self, name: str, **columns: Any) -> None:
        self.execute(self.dialect.change_schedule(list(columns)), columns | {"name": name})

    def change_options(self, name: str, **columns: Any) -> None:
        self.execute(self.dialect.change_options(list(columns)), columns | {"name": name})

    def adopt(self, name: str) -> None:
        """Give a row of another program the side row in which is counted, and said what is wrong."""
        self.execute(self.dialect.insert_options, ADOPTED | {"name": name})

    def advance(self, row: ScheduleRow, to: int) -> bool:
        """Whether its boundary was as seen, so that nobody else fires what was due."""
        seen = {"name": row.name, "seen": row.next_fire_at, "cron_expr": row.cron_expr, "next": to}
        return self.execute(self.dialect.advance_schedule, seen) == 1

    def note_firing(self, row: ScheduleRow, fired: int | None, skipped: int) -> bool:
        """Count; ``False`` if anything else of the schedule, which ``advance`` has locked, is not as seen."""
        counts = {"name": row.name, "fired": fired, "skipped": skipped}
        return self.execute(self.dialect.note_firing, row.columns | counts) == 1

    def delete(self, name: str) -> bool:
        self.execute(self.dialect.forget_runs, {"name": name})
        self.execute(self.dialect.delete_options, {"name": name})
        return self.execute(self.dialect.delete_schedule, {"name": name}) > 0

    # -- runs of those that must not overlap ------------------------------------------------------

    def is_running(self, name: str) -> bool:
        return bool(self.fetch(self.dialect.any_run, {"name": name}))

    def note_run(self, name: str, job_id: int) -> None:
        self.execute(self.dialect.forget_ended_runs, {"name": name})
        self.execute(self.dialect.note_run, {"name": name, "id": job_id})

    def forget_runs(self, name: str) -> None:
        self.execute(self.dialect.forget_runs, {"name": name})

    def _rows(self, sql: str, **params: Any) -> list[ScheduleRow]:
        return [ScheduleRow.from_row(row) for row in self.fetch(sql, params or None)]


class ScheduledTask(models.Model):
    """When to enqueue what. ``cron_expr`` is in honker's grammar, so that any program can lead."""

    name = NameField(primary_key=True)
    queue = NameField()
    cron_expr = LenientTextField()
    payload = LenientTextField()
    priority = models.BigIntegerField(db_default=0)
    expires_s = models.BigIntegerField(null=True)
    next_fire_at = models.BigIntegerField()
    enabled = models.BigIntegerField(db_default=1)
    max_attempts = models.BigIntegerField(db_default=3)

    objects = ScheduleManager()

    class Meta:
        db_table = tables.SCHEDULES
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        permissions = [
            ("pause_scheduledtask", "Can pause and resume schedules"),
            ("run_scheduledtask", "Can run schedules now"),
        ]

    def __str__(self) -> str:
        return str(self.name)

    @property
    def alone(self) -> ScheduleRow:
        """What was read of it, as if it had no options."""
        return ScheduleRow.from_row([*(getattr(self, name) for name in ROW), *[None] * len(OPTIONS)])


class ScheduleOptions(models.Model):
    """Beside a schedule: its zone, its catch-up, its owner and its expression as written.

    ``problem`` says why it stands still, and ``broken`` is the ``cron_expr`` of which that is said.
    ``withdrawn``: the code does not declare it any more. ``declared_enabled`` is what the code said last.
    """

    name = NameField(primary_key=True)
    timezone = models.CharField(max_length=64)
    catch_up = models.CharField(max_length=16)
    owner = models.CharField(max_length=16)
    expression = LenientTextField()
    canonical = LenientTextField()
    last_fire_at = models.BigIntegerField(null=True)
    skipped = models.BigIntegerField(default=0)
    overlap = models.BooleanField(default=True)
    problem = LenientTextField(default="")
    broken = LenientTextField(null=True)
    withdrawn = models.BooleanField(default=False)
    declared_enabled = models.BooleanField(default=True)

    class Meta:
        db_table = tables.SCHEDULE_OPTIONS

    def __str__(self) -> str:
        return str(self.name)


class ScheduledJob(models.Model):
    """A job that a schedule with ``overlap=False`` has put in: while it lives, no other is."""

    job_id = models.BigIntegerField(primary_key=True)
    schedule = NameField(db_index=True)

    class Meta:
        db_table = tables.SCHEDULED_JOBS

    def __str__(self) -> str:
        return f"job {self.job_id} of schedule {self.schedule}"
