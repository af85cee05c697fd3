"""Statements that look for dead letters, and bring them back to the queue."""

from __future__ import annotations

from .burying import MOVED
from .clauses import Clauses
from .tables import ATTEMPTS, DEAD, LIVE

MESSAGE = 2_010
"""Characters at the beginning of a stored error among which its message is: ``failures.MAX_ERROR``, and a
mark where it was cut."""

TRACEBACK = "Traceback (most recent call last)"


class Reviving(Clauses):
    """No index but the key: who looks walks by id, a bounded number of rows at a time.

    ``where`` is what ``letter_is`` answers.
    """

    def position(self, part: str, text: str) -> str:
        """Where a text begins to hold a part, letter by letter, counted from 1; 0 if it does not."""
        return f"instr({text}, {part})"

    def letter_is(self, queues: str, *, error: bool, since: bool, until: bool) -> str:
        """More conditions of a dead letter; ``queues`` is a list of bound parameters, empty for all."""
        terms = [f"queue IN ({queues})"] if queues else []
        if error:
            terms.append(self._error_says)
        if since:
            terms.append("died_at >= %(since)s")
        if until:
            terms.append("died_at < %(until)s")
        return "".join(f" AND {term}" for term in terms)

    @property
    def _error_says(self) -> str:
        """In the message, which the traceback follows, or in the path of the exception's class."""
        stored = f"substr(COALESCE(last_error, ''), 1, {MESSAGE})"
        said = self.position("%(error)s", stored)
        traceback = self.position(f"'{TRACEBACK}'", stored)
        # MAX(id + 0): for MAX(id), as for ORDER BY id, PostgreSQL may walk the whole table by its key.
        last = f"SELECT MAX(id + 0) FROM {ATTEMPTS} WHERE job_id = {DEAD}.id AND error_class <> ''"
        is_last = f"SELECT 1 FROM {ATTEMPTS} tried WHERE tried.id = ({last})"
        of_class = f"EXISTS ({is_last} AND {self.position('%(error)s', 'tried.error_class')} > 0)"
        return f"(({said} > 0 AND ({traceback} = 0 OR {said} < {traceback})) OR {of_class})"

    last_dead_id = f"SELECT MAX(id) FROM {DEAD}"

    step = (
        f"SELECT MAX(id) FROM (SELECT id FROM {DEAD} WHERE id > %(after)s AND id <= %(last)s "
        "ORDER BY id LIMIT %(n)s) AS looked"
    )
    """The id of the last of the next ``n`` rows."""

    def letters(self, where: str, ids: str = "", *, payloads: bool) -> str:
        """Those that are wanted, of a step or among ids."""
        among = f"id IN ({ids})" if ids else "id > %(after)s AND id <= %(last)s"
        payload = self.text("payload") if payloads else "''"
        return f"SELECT id, {self.text('queue')}, {payload} FROM {DEAD} WHERE {among}{where} ORDER BY id"

    def lock_dead(self, ids: str, where: str) -> str:
        """By id: two that want the same letters wait for each other in one order."""
        return (
            f"SELECT id, {self.text('payload')}, created_at FROM {DEAD} WHERE id IN ({ids}){where} "
            f"ORDER BY id{self.for_update}"
        )

    def revive(self, ids: str) -> str:
        """Copy dead letters back to the queue for a new life."""
        return f"INSERT INTO {LIVE} ({self._columns}) {self._copy('id')} WHERE id IN ({ids})"

    @property
    def revive_as(self) -> str:
        """The same for one under another id, when its own is taken."""
        return f"INSERT INTO {LIVE} ({self._columns}) {self._copy('%(new_id)s')} WHERE id = %(id)s"

    _columns = f"id, {MOVED}, created_at"

    def _copy(self, new_id: str) -> str:
        budget = "CASE WHEN max_attempts < 1 THEN 1 ELSE max_attempts END"
        return f"SELECT {new_id}, queue, payload, priority, {self.now}, 0, {budget}, created_at FROM {DEAD}"

    def delete_dead(self, ids: str) -> str:
        return f"DELETE FROM {DEAD} WHERE id IN ({ids})"
