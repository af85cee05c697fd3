"""The turns of a worker, where the database takes one in a statement or two."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connections

from alkstore_django.failures import storable

from .base import SQLManager, retrying
from .claim import Claim
from .run import MAX_NAME


class Entry(NamedTuple):
    """What is said of one claim in hand; see ``ENTRY`` in ``sql.turning``. Durations are seconds, but
    for ``duration_ms``; ``value`` is the JSON text of a result to keep."""

    id: int
    attempts: int
    what: str
    task: str = ""
    duration_ms: int | None = None
    ttl: int | None = None
    value: str | None = None
    extend: int | None = None

    @classmethod
    def ack(
        cls, claim: Claim, task: str, duration_ms: int | None, ttl: int | None, value: str | None
    ) -> Entry:
        return cls(*claim.key, "ack", _name(task), duration_ms, ttl, value)

    @classmethod
    def give_back(cls, claim: Claim) -> Entry:
        return cls(*claim.key, "give back")

    @classmethod
    def renew(cls, claim: Claim, extend: int) -> Entry:
        return cls(*claim.key, "renew", extend=extend)


@lru_cache(maxsize=1_000)
def _name(task: str) -> str:
    return storable(task, MAX_NAME)


_prepared = threading.local()
"""The driver's connection of each alias, in this thread, that has what a turn needs for good."""


class TurnManager(SQLManager):
    @property
    def is_possible(self) -> bool:
        """Whether the database takes turns so; otherwise the other managers do it step by step."""
        return self.dialect.takes_turns

    @property
    def is_atomic(self) -> bool:
        """Whether ``take`` is a transaction by itself; otherwise its caller opens one."""
        return self.dialect.turn is not None or self.can_pipeline()

    def take(
        self, worker_id: str, entries: Sequence[Entry], wishes: Sequence[Sequence[Any]], room: int
    ) -> tuple[set[tuple[int, int]], list[Claim]]:
        """Settle entries and claim up to ``room`` jobs by the order of ``wishes``, together.

        Each entry is of another claim. Answers the keys of those that were still held, and the new
        claims. ``wishes`` are queue, number, visibility timeout and whether to claim tasks only.
        """
        dialect = self.dialect
        params = dialect.turn_params(entries, wishes) | {"worker_id": worker_id, "room": room}
        statements = {"settle": dialect.settle} if entries else {}
        if room > 0 and wishes:
            statements["grant"] = dialect.grant
        if turn := dialect.turn:
            self.prepare()
            retrying(self.database, lambda: self.execute(turn, params))
        found = self._fetch_all([*statements.values()], params)
        rows = dict(zip(statements, found, strict=True))
        claims = [Claim.from_row(row) for row in rows.get("grant", ())]
        if not dialect.grants_in_order:
            rank = {wish[0]: number for number, wish in enumerate(wishes)}
            claims.sort(key=lambda claim: (rank[claim.queue], claim.rank))
        return {(int(row[0]), int(row[1])) for row in rows.get("settle", ())}, claims

    def _fetch_all(self, statements: Sequence[str], params: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
        def at_once() -> list[list[tuple[Any, ...]]]:
            if self.can_pipeline():  # not when it is tried again at another isolation
                return self.pipeline([self.dialect.turn_opening, *statements], params)[1:]
            return [self.fetch(statement, params) for statement in statements]

        return retrying(self.database, at_once)

    def prepare(self) -> None:
        """Make what the statements need in the connection: a new one has none, and a rollback undoes it."""
        dialect, connection = self.dialect, connections[self.database]
        prepared = vars(_prepared)
        if not dialect.lacks_turn_objects or prepared.get(self.database) is connection.connection is not None:
            return
        if lacking := self.fetch(dialect.lacks_turn_objects):
            if lacking == [(0,)] and not connection.in_atomic_block:
                self.execute(dialect.turn_setting)
            for statement in dialect.turn_objects:
                self.execute(statement)
        if not connection.in_atomic_block:
            prepared[self.database] = connection.connection
