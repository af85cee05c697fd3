"""The one read of an idle worker: is there something to do, and if not, when."""

from __future__ import annotations

from collections.abc import Sequence

from .clauses import Clauses
from .tables import LIVE


class Looking(Clauses):
    """Who sleeps until a whole second must not come early: it asks for the finer clock, too."""

    def look(self, flags: Sequence[bool]) -> str:
        """For each of some queues, with its place: in how many seconds the first job becomes claimable,
        and the first claim lapses; not above 0 where it has, NULL where there is none.

        One statement, so one moment: what becomes due while somebody asks is due or still to come, never
        neither. The queues are the parameters ``q0``, ``q1``, ...; the flag of each says whether only
        tasks count.
        """
        each = " UNION ALL ".join(
            f"SELECT {index} AS place, ({self._first_due(f'q{index}', only)}) AS due, "
            f"({self._first_to_lapse(f'q{index}', only)}) AS lapses"
            for index, only in enumerate(flags)
        )
        clock = self.precise_now
        return f"SELECT place, due - {clock}, lapses - {clock} + 1 FROM ({each}) AS firsts"

    def holders(self, ids: str) -> str:
        """Who has the claims of live jobs, NULL for nobody; ``ids`` is a list of bound parameters."""
        return f"SELECT id, {self.text('worker_id')}, attempts FROM {LIVE} WHERE id IN ({ids})"

    def walk(self, queues: str) -> str:
        """Rows by id, from an id on; ``queues`` is a list of bound parameters, empty for all."""
        among = f" AND queue IN ({queues})" if queues else ""
        return f"SELECT {self.columns()} FROM {LIVE} WHERE id > %(after)s{among} ORDER BY id LIMIT %(n)s"

    def _first_due(self, queue: str, tasks_only: bool) -> str:
        return (
            f"SELECT run_at FROM {LIVE} WHERE queue = %({queue})s AND state = 'pending' "
            f"AND attempts < max_attempts AND (expires_at IS NULL OR expires_at > {self.now})"
            f"{self.only(tasks_only)} ORDER BY run_at LIMIT 1"
        )

    def _first_to_lapse(self, queue: str, tasks_only: bool) -> str:
        return (
            f"SELECT claim_expires_at FROM {LIVE} WHERE queue = %({queue})s AND state = 'processing' "
            f"AND claim_expires_at IS NOT NULL{self.only(tasks_only)} ORDER BY claim_expires_at LIMIT 1"
        )
