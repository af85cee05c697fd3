"""Statements from the live table to the dead letters, and the ids of both."""

from __future__ import annotations

from .clauses import Clauses
from .tables import ATTEMPTS, DEAD, LIVE, RESULTS, RUNS

MOVED = "queue, payload, priority, run_at, attempts, max_attempts"


class Burying(Clauses):
    """Moves are a copy and a delete; the manager puts both in one savepoint.

    Sweeps have no ORDER BY: to get one by id, PostgreSQL would walk the whole table by its key.
    """

    def bury(self, ids: str) -> str:
        """Copy locked live rows to the dead letters under their own ids; ``died_at`` is its default."""
        return (
            f"INSERT INTO {DEAD} (id, {MOVED}, last_error, created_at) "
            f"SELECT id, {MOVED}, %(error)s, created_at FROM {LIVE} WHERE id IN ({ids})"
        )

    @property
    def bury_as(self) -> str:
        """The same for one row under another id, when its own is taken."""
        return (
            f"INSERT INTO {DEAD} (id, {MOVED}, last_error, created_at) "
            f"SELECT %(new_id)s, {MOVED}, %(error)s, created_at FROM {LIVE} WHERE id = %(id)s"
        )

    def expired(self, tasks_only: bool) -> str:
        """Lock jobs past their ``expires_at``: waiting ones, and zombies whose claim lapsed as well."""
        return (
            f"SELECT {self.columns()}, 1 FROM {LIVE} WHERE queue = %(queue)s AND expires_at <= {self.now} "
            f"AND (state = 'pending' OR ({self.lapsed})){self.only(tasks_only)} "
            f"LIMIT %(n)s{self.skip_locked}"
        )

    def exhausted(self, tasks_only: bool) -> str:
        """Lock due pending jobs without an attempt left: only foreign programs write such rows."""
        return (
            f"SELECT {self.columns()}, 0 FROM {LIVE} WHERE queue = %(queue)s AND state = 'pending' "
            f"AND run_at <= {self.now} AND attempts >= max_attempts{self.only(tasks_only)} "
            f"LIMIT %(n)s{self.skip_locked}"
        )

    @property
    def untasked(self) -> str:
        """Due rows that are not tasks, from an id on; for telling broken payloads from foreign ones."""
        return (
            f"SELECT {self.columns()} FROM {LIVE} WHERE queue = %(queue)s AND id > %(after)s "
            f"AND state = 'pending' AND run_at <= {self.now} AND NOT ({self.is_task}) ORDER BY id LIMIT %(n)s"
        )

    @property
    def highest_known_id(self) -> str:
        """The highest id that any table remembers: a new job must lie above it.

        Ids past 2**62 are not counted: only another program can have made them up, and to go on
        above them would soon leave no id at all.
        """
        sources = ((LIVE, "id"), (DEAD, "id"), (RESULTS, "job_id"), (ATTEMPTS, "job_id"), (RUNS, "job_id"))
        union = " UNION ALL ".join(
            f"SELECT MAX({column}) AS id FROM {table} WHERE {column} < {2**62}" for table, column in sources
        )
        return f"SELECT COALESCE(MAX(id), 0) FROM ({union}) AS known"

    last_given_id = f"SELECT COALESCE(MAX(id), 0) FROM {LIVE} WHERE id < {2**62}"
    """The last id that the live table's sequence is known to have given."""

    tells_last_given_id = True
    """Whether that is the sequence's own answer, and not the highest id that happens to be there."""

    raise_sequence: tuple[str, ...] = (
        f"INSERT INTO {LIVE} (id, queue, payload) VALUES (%(id)s, '', '')",
        f"DELETE FROM {LIVE} WHERE id = %(id)s",
    )
    """Statements that move the live table's sequence to ``id``, which lies above ``last_given_id``.

    SQLite's AUTOINCREMENT and InnoDB both remember the highest id that a row ever had, also of one
    that the same transaction deletes again.
    """

    @property
    def reserve(self) -> str:
        """A row to be deleted at once: only the sequence gives two transactions two different ids."""
        returning = "" if self.tells_last_id else " RETURNING id"
        return f"INSERT INTO {LIVE} (queue, payload) VALUES ('', ''){returning}"

    @property
    def dead_counts(self) -> str:
        return f"SELECT {self.text('queue')}, COUNT(*) FROM {DEAD} GROUP BY queue"
