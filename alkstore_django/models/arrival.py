"""``Arrival``: what an INSERT of a job leaves to say."""

from __future__ import annotations

from typing import NamedTuple


class Arrival(NamedTuple):
    """The id of a new job, and when it was put in: Unix seconds by the database's clock."""

    id: int
    created_at: int
