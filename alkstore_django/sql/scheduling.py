"""Statements about schedules: honker's rows, and our options beside them."""

from __future__ import annotations

from collections.abc import Sequence

from .clauses import Clauses
from .tables import DEAD, LIVE, SCHEDULE_OPTIONS, SCHEDULED_JOBS, SCHEDULES

ROW: tuple[str, ...] = ("name", "queue", "cron_expr", "payload", "priority", "expires_s")
ROW += ("next_fire_at", "enabled", "max_attempts")
OPTIONS: tuple[str, ...] = ("timezone", "catch_up", "owner", "expression", "canonical", "last_fire_at")
OPTIONS += ("skipped", "overlap", "problem", "broken", "withdrawn", "declared_enabled")
_FIRED = ("queue", "payload", "priority", "expires_s", "max_attempts")
_FIRED_BY = ("timezone", "catch_up", "owner", "expression", "canonical", "overlap", "broken")
"""What a firing is made of, beside the columns of ``advance_schedule``."""

_TEXT = {"name", "queue", "cron_expr", "payload", "timezone", "catch_up", "owner", "expression", "canonical"}
_TEXT |= {"problem", "broken"}


class Scheduling(Clauses):
    """A schedule stands still, beside ``enabled``, while ``broken`` is what its ``cron_expr`` says: whoever
    changes the expression, also another program, has it tried again."""

    @property
    def _schedules(self) -> str:
        columns = [_raw(self, name, f"s.{name}") for name in ROW]
        columns += [_raw(self, name, f"o.{name}") for name in OPTIONS]
        return f"SELECT {', '.join(columns)} FROM {self._joined}"

    _joined = f"{SCHEDULES} s LEFT JOIN {SCHEDULE_OPTIONS} o ON o.name = s.name"
    _stands = "s.enabled = 1 AND (o.broken IS NULL OR o.broken <> s.cron_expr)"

    @property
    def schedules(self) -> str:
        return self._schedules

    @property
    def schedule(self) -> str:
        return f"{self._schedules} WHERE s.name = %(name)s"

    def named_schedules(self, keys: str) -> str:
        return f"{self._schedules} WHERE s.name IN ({keys})"

    @property
    def lock_schedule(self) -> str:
        return f"SELECT 1 FROM {SCHEDULES} WHERE name = %(name)s{self.for_update}"

    @property
    def locked_schedule(self) -> str:
        """``schedule``, once its row is locked."""
        return self.schedule

    @property
    def due_schedules(self) -> str:
        """Up to ``n`` that are due at ``now``, the longest due first."""
        due = f"{self._stands} AND s.next_fire_at <= %(now)s"
        return f"{self._schedules} WHERE {due} ORDER BY s.next_fire_at, s.name LIMIT %(n)s"

    @property
    def broken_schedules(self) -> str:
        return f"{self._schedules} WHERE s.enabled = 1 AND o.broken = s.cron_expr"

    @property
    def soonest_schedule(self) -> str:
        """When the next one is due, NULL for none; and the time, with a fraction."""
        return f"SELECT MIN(s.next_fire_at), {self.precise_now} FROM {self._joined} WHERE {self._stands}"

    # -- writes -----------------------------------------------------------------------------------

    @property
    def insert_schedule(self) -> str:
        """Nothing, if there is one of that name."""
        return self.insert_new(SCHEDULES, ROW)

    def change_schedule(self, columns: Sequence[str]) -> str:
        return f"UPDATE {SCHEDULES} SET {_assigned(columns)} WHERE name = %(name)s"

    @property
    def advance_schedule(self) -> str:
        """The guard of every firing: nobody else has fired this boundary, paused the schedule or given it
        another expression; nor will before this transaction ends."""
        return (
            f"UPDATE {SCHEDULES} SET next_fire_at = %(next)s WHERE name = %(name)s AND enabled = 1 "
            "AND next_fire_at = %(seen)s AND cron_expr = %(cron_expr)s"
        )

    @property
    def delete_schedule(self) -> str:
        return f"DELETE FROM {SCHEDULES} WHERE name = %(name)s"

    @property
    def insert_options(self) -> str:
        return self.insert_new(SCHEDULE_OPTIONS, ("name", *OPTIONS))

    @property
    def save_options(self) -> str:
        names = ("name", *OPTIONS)
        row = ", ".join(f"%({name})s" for name in names)
        return self.upsert(SCHEDULE_OPTIONS, names, f"({row})")

    def change_options(self, columns: Sequence[str]) -> str:
        return f"UPDATE {SCHEDULE_OPTIONS} SET {_assigned(columns)} WHERE name = %(name)s"

    @property
    def note_firing(self) -> str:
        """The rest of the guard: what was fired is what is stored, in both tables. It stands here, where the
        row is locked: PostgreSQL, having waited for it, goes on with the options of before."""
        row = f"SELECT 1 FROM {SCHEDULES} s WHERE s.name = %(name)s AND {self._as_read(_FIRED, 's.')}"
        options = self._as_read(_FIRED_BY)
        return (
            f"UPDATE {SCHEDULE_OPTIONS} SET last_fire_at = COALESCE(%(fired)s, last_fire_at), "
            f"skipped = skipped + %(skipped)s WHERE name = %(name)s AND {options} AND EXISTS ({row})"
        )

    def _as_read(self, columns: Sequence[str], prefix: str = "") -> str:
        """Whether the columns still hold what the driver gave: the parameters of their names."""
        pairs = [(_raw(self, name, f"{prefix}{name}"), _raw(self, name, f"%({name})s")) for name in columns]
        return " AND ".join(f"{stored} {self.same} {read}" for stored, read in pairs)

    @property
    def delete_options(self) -> str:
        return f"DELETE FROM {SCHEDULE_OPTIONS} WHERE name = %(name)s"

    # -- the runs of those that must not overlap --------------------------------------------------

    @property
    def any_run(self) -> str:
        """Whether a job of a schedule is queued or running."""
        return (
            f"SELECT 1 FROM {SCHEDULED_JOBS} r JOIN {LIVE} l ON l.id = r.job_id "
            "WHERE r.schedule = %(name)s LIMIT 1"
        )

    @property
    def note_run(self) -> str:
        return self.upsert(SCHEDULED_JOBS, ("job_id", "schedule"), "(%(id)s, %(name)s)")

    @property
    def forget_ended_runs(self) -> str:
        """Those of jobs that cannot come back: a dead letter can."""
        known = [
            f"NOT EXISTS (SELECT 1 FROM {table} job WHERE job.id = {SCHEDULED_JOBS}.job_id)"
            for table in (LIVE, DEAD)
        ]
        return f"DELETE FROM {SCHEDULED_JOBS} WHERE schedule = %(name)s AND {' AND '.join(known)}"

    @property
    def forget_runs(self) -> str:
        return f"DELETE FROM {SCHEDULED_JOBS} WHERE schedule = %(name)s"

    @property
    def rename_run(self) -> str:
        return f"UPDATE {SCHEDULED_JOBS} SET job_id = %(new_id)s WHERE job_id = %(id)s"


def _raw(dialect: Clauses, name: str, value: str) -> str:
    return dialect.text(value) if name in _TEXT else value


def _assigned(columns: Sequence[str]) -> str:
    return ", ".join(f"{name} = %({name})s" for name in columns)
