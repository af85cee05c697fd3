"""Rows that have been kept for long enough: found in bounded steps, deleted if they still are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

from .base import SQLManager, in_transaction, placeholders, retrying

FIRST = -(2**63)
"""Below every key."""

OVERHEAD = 200
"""Bytes that a row counts for, beside its long columns."""


class Found(NamedTuple):
    """Keys of what is over, up to where was looked (``upto``); ``is_last``: behind it is nothing more.
    ``is_heavy``: more would have been too many bytes."""

    keys: list[int]
    upto: int
    is_last: bool = False
    is_heavy: bool = False


class PruningManager(SQLManager):
    """Of rows of every kind in ``sql.retaining``; ``params`` are those that its condition names."""

    @property
    def is_shared(self) -> bool:
        """Whether rows may be another program's."""
        return self.dialect.adopts_tables

    def look(self, kind: str, after: int, rows: int, most: int, room: int, **params: Any) -> Found:
        """Look at up to ``rows`` rows after a key, for at most ``most`` that are over and together have
        about ``room`` bytes, or are one. Reads only, and no more of them than it finds room for."""
        found = self.dialect.kinds[kind]
        if found.by:
            sql, params = self.dialect.over_within(kind), params | {"n": most}
            keys, is_heavy = self._taken(sql, params, most, room)
            return Found(keys, after, not is_heavy and len(keys) < most, is_heavy)
        upto, count = self.fetch(self.dialect.reach(kind), {"after": after, "n": rows})[0]
        if upto is None:
            return Found([], after, True)
        params |= {"after": after, "upto": upto}
        keys, is_heavy = self._taken(self.dialect.over_within(kind), params, most, room)
        if is_heavy or len(keys) == most:
            return Found(keys, keys[-1], is_heavy=is_heavy)
        return Found(keys, int(upto), count < rows or (found.in_order and not keys))

    def _taken(self, sql: str, params: dict[str, Any], most: int, room: int) -> tuple[list[int], bool]:
        keys: list[int] = []
        with closing(self.each(sql, params)) as rows:
            for key, size in rows:
                keys.append(int(key))
                room -= int(size) + OVERHEAD
                if room <= 0 or len(keys) == most:
                    return keys, room <= 0
        return keys, False

    def delete(self, kind: str, keys: Sequence[int], **params: Any) -> int:
        """Delete those that are still over; how many. Passes over rows that somebody else has locked."""
        dialect, (names, ids) = self.dialect, placeholders(keys, "key")
        params |= ids
        if dialect.has_one_writer:  # one statement: nobody waits for what Python does in between
            statement = dialect.delete_over(kind, names)
            return retrying(self.database, lambda: self.execute(statement, params))

        def delete() -> int:
            locked = [row[0] for row in self.fetch(dialect.lock_over(kind, names), params)]
            if not locked:
                return 0
            mine, given = placeholders(locked, "key")
            return self.execute(dialect.delete_rows(kind, mine), given)

        return in_transaction(self.database, delete)

    def count_over(self, kind: str, **params: Any) -> int:
        """How many are over; with ``dead_age`` as if the dead letters of that age were gone already."""
        statement = self.dialect.count_over(kind, dead_go="dead_age" in params)
        return int(self.fetch(statement, params)[0][0])
