"""A worker's turn in as few statements as the database allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .settling import RUN_COLUMNS, Settling

ENTRY: tuple[tuple[str, str], ...] = (
    ("id", "bigint"),
    ("attempts", "bigint"),
    ("what", "text"),
    ("task", "text"),
    ("duration_ms", "bigint"),
    ("ttl", "bigint"),
    ("value", "text"),
    ("extend", "bigint"),
)
"""What is said of one claim in hand, with types. ``what``: ``ack``, ``give back`` or ``renew``."""

WISH: tuple[tuple[str, str], ...] = (
    ("queue", "text"),
    ("n", "bigint"),
    ("visibility", "bigint"),
    ("tasks_only", "boolean"),
)

Rows = Sequence[Sequence[Any]]

RUN = (*RUN_COLUMNS, "duration_ms", "finished_at", "expires_at")


class Turning(Settling):
    """Where ``takes_turns``, all entries of a turn are settled by one statement, each behind the fence
    of its claim, and all its wishes are granted by one; elsewhere the managers go step by step.

    The parameters of both are ``worker_id``, ``room`` and those of ``turn_params``.
    """

    takes_turns = False

    lacks_turn_objects: str | None = None
    """Finds a row where the statements need ``turn_objects`` in the connection, and it has none: how many
    temporary objects of others it has."""

    turn_setting = ""
    """What comes before ``turn_objects``, outside of a transaction. It drops temporary objects of others."""

    @property
    def turn_objects(self) -> tuple[str, ...]:
        return ()

    turn: str | None = None
    """The whole turn, where it is one statement; ``settle`` and ``grant`` then only read what it did."""

    turn_opening = ""
    """What a pipeline begins with."""

    def pipeline_cursor(self, connection: Any) -> Any:
        """A cursor of the driver for a pipeline; ``None`` where it has none, or where the server is
        behind a pooler that does not know about prepared statements."""
        return None

    @property
    def settle(self) -> str:
        """Returns id and attempts of the entries whose claims were held."""
        raise NotImplementedError

    grants_in_order = False
    """``grant`` returns the claims as they were chosen; otherwise in any order, as RETURNING does."""

    @property
    def grant(self) -> str:
        """Returns the columns of the new claims."""
        raise NotImplementedError

    def turn_params(
        self, entries: Sequence[Sequence[Any]], wishes: Sequence[Sequence[Any]]
    ) -> dict[str, Any]:
        """Rows of ``ENTRY`` and of ``WISH`` as parameters."""
        raise NotImplementedError
