"""A turn on SQLite: one INSERT into a view of the connection's own, whose trigger does everything.

Between the statements of a transaction Python may have to wait for tasks that hold its interpreter
lock, and the file's only write lock would wait with it: other processes would be stuck for seconds
(spike.md 3.3). Within one statement nothing waits. TEMP objects never reach the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .clauses import LET_GO
from .tables import LIVE, RESULTS, RUNS
from .turning import ENTRY, RUN, WISH, Turning

_ENTRY = [name for name, _ in ENTRY]
_WISH = [name for name, _ in WISH]


def _items(names: Sequence[str]) -> str:
    return ", ".join(f"given.value->>{index}" for index in range(len(names)))


class SQLiteTurn(Turning):
    """In a trigger targets bear no schema; ``main`` names the sources, should TEMP hold a namesake."""

    takes_turns = True
    grants_in_order = True
    lacks_turn_objects = (
        "SELECT (SELECT count(*) FROM temp.sqlite_schema) "
        "WHERE NOT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name = 'alkstore_turn_taken')"
    )
    turn_setting = "PRAGMA temp_store = MEMORY"  # a tenth faster
    turn = (
        "INSERT INTO temp.alkstore_turn (worker_id, entries, wishes, room) "
        "VALUES (%(worker_id)s, %(entries)s, %(wishes)s, %(room)s)"
    )

    @property
    def settle(self) -> str:
        return "SELECT id, attempts FROM temp.alkstore_held"

    @property
    def grant(self) -> str:
        """A claim that has lapsed since then, and has been taken again, is not ours any more."""
        return (
            f"SELECT {self.columns('job')} FROM temp.alkstore_picked picked CROSS JOIN main.{LIVE} job "
            "ON job.id = picked.id AND job.worker_id = %(worker_id)s AND job.state = 'processing' "
            f"WHERE {few('picked.position > 0')} ORDER BY picked.position"
        )

    def turn_params(
        self, entries: Sequence[Sequence[Any]], wishes: Sequence[Sequence[Any]]
    ) -> dict[str, Any]:
        return {"entries": _encode(entries), "wishes": _encode(wishes)}

    def pick(self, tasks_only: str) -> str:
        raise NotImplementedError

    @property
    def turn_objects(self) -> tuple[str, ...]:
        named = {"queue": "NEW.queue", "n": "min(NEW.n, NEW.room - (SELECT count(*) FROM alkstore_picked))"}
        pick = self.pick(f" AND (NOT NEW.tasks_only OR {self.is_task})") % named
        return (
            f"CREATE TEMP TABLE alkstore_held (id INTEGER PRIMARY KEY, {', '.join(_ENTRY[1:])})",
            "CREATE TEMP TABLE alkstore_picked (position INTEGER PRIMARY KEY, id INTEGER NOT NULL)",
            _view("alkstore_wish", (*_WISH, "worker_id", "room")),
            _view("alkstore_turn", ("worker_id", "entries", "wishes", "room")),
            _trigger(
                "alkstore_wish_granted",
                "alkstore_wish",
                f"INSERT INTO alkstore_picked (id) SELECT id FROM ({pick})",
                f"UPDATE {LIVE} SET state = 'processing', attempts = attempts + 1, "
                "worker_id = NEW.worker_id, "
                f"claim_expires_at = {self.now} + NEW.visibility, claimed_at = {self.now} "
                "WHERE id IN (SELECT id FROM alkstore_picked) AND state = 'pending'",
            ),
            _trigger(
                "alkstore_turn_taken",
                "alkstore_turn",
                "DELETE FROM alkstore_held",
                "DELETE FROM alkstore_picked",
                *self._settling,
                f"INSERT INTO alkstore_wish SELECT {_items(_WISH)}, NEW.worker_id, NEW.room "
                "FROM json_each(NEW.wishes) given",
            ),
        )

    @property
    def _settling(self) -> tuple[str, ...]:
        run = (
            "job.id, job.queue, held.task, CAST(job.payload AS TEXT), 'succeeded', "
            "CAST(job.priority AS INTEGER), job.attempts, CAST(job.max_attempts AS INTEGER), job.worker_id, "
            "CAST(job.created_at AS INTEGER), CAST(job.claimed_at AS INTEGER), held.duration_ms, "
            f"{self.now}, {self.now} + held.ttl"
        )
        acked = "SELECT id FROM alkstore_held WHERE what = 'ack'"
        return (
            f"INSERT INTO alkstore_held SELECT {_items(_ENTRY)} FROM json_each(NEW.entries) given "
            f"CROSS JOIN main.{LIVE} job ON job.id = given.value->>0 AND job.attempts = given.value->>1 "
            "AND job.worker_id = NEW.worker_id AND job.state = 'processing' "
            f"AND job.claim_expires_at >= {self.now}",
            self.upsert_from(
                RUNS,
                RUN,
                f"SELECT {run} FROM alkstore_held held CROSS JOIN main.{LIVE} job ON job.id = held.id "
                "WHERE held.what = 'ack'",
            ),
            self.upsert_from(
                RESULTS,
                ("job_id", "value", "expires_at"),
                f"SELECT id, value, {self.now} + ttl FROM alkstore_held "
                "WHERE what = 'ack' AND value IS NOT NULL",
            ),
            f"DELETE FROM {LIVE} WHERE id IN ({acked})",
            f"UPDATE {LIVE} SET state = 'pending', attempts = attempts - 1, {LET_GO} "
            "WHERE id IN (SELECT id FROM alkstore_held WHERE what = 'give back')",
            f"UPDATE {LIVE} SET claim_expires_at = {self.now} + "
            f"(SELECT extend FROM alkstore_held held WHERE held.id = {LIVE}.id) "
            "WHERE id IN (SELECT id FROM alkstore_held WHERE what = 'renew')",
        )


def few(condition: str) -> str:
    """A condition on an outer loop that always holds, and by which the planner expects few rows of it.

    A recursion or a temporary table has millions, it thinks, as soon as ANALYZE has counted the table that
    they are joined with: it would read all of that for a Bloom filter first.
    """
    return f"likelihood({condition}, 0.0)"


def _encode(rows: Sequence[Sequence[Any]]) -> str:
    return json.dumps(rows, separators=(",", ":"))


def _view(name: str, columns: Sequence[str]) -> str:
    return f"CREATE TEMP VIEW {name} AS SELECT {', '.join(f'NULL AS {each}' for each in columns)} WHERE 0"


def _trigger(name: str, view: str, *statements: str) -> str:
    return f"CREATE TEMP TRIGGER {name} INSTEAD OF INSERT ON {view} BEGIN {'; '.join(statements)}; END"
