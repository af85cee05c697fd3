"""Metadata: what a task tells of its own run while it goes on, such as how far it is.

What it was enqueued with travels in the envelope; what a run saves is a row of a table of its own, so
that a task without it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .envelopes import Envelope
from .metadata_values import checked, read
from .models import Claim, Metadata, MetadataManager
from .payloads import encode


class Attempt(NamedTuple):
    """What tells a claim from all others."""

    id: int
    worker_id: str
    attempts: int


def of_job(using: str, job_id: int, envelope: Envelope) -> dict[str, Any]:
    """What was saved last, or what the job was enqueued with."""
    return read(_rows(using).value(job_id), envelope)


def saved(using: str, job_ids: Iterable[int]) -> dict[int, str | bytes]:
    """The JSON text that was saved last, of those jobs that have any."""
    return _rows(using).values_of(list(job_ids))


def save(using: str, claim: Any, values: Mapping[str, Any], *, locked: bool = False) -> bool:
    """Keep ``values`` for a run that still holds its claim; ``False``, and nothing is kept, if it does not.

    ``locked``: the present transaction has locked the job's row. Raises ``TypeError`` and ``ValueError``.
    """
    return _rows(using).save(claim, encode(checked(values), "metadata"), locked=locked)


def _rows(using: str) -> MetadataManager:
    return Metadata.objects.db_manager(using)


class Record:
    """The metadata of a job in the hands of its run, which may change ``values``."""

    def __init__(self, using: str, claim: Claim, envelope: Envelope, hold: Any) -> None:
        self._using = using
        self._claim = claim
        self.envelope = envelope
        self._hold = hold
        self._values: dict[str, Any] = {}
        self._kept = self._first = ""
        self.is_read = False

    @property
    def values(self) -> dict[str, Any]:
        """Read from the database with the first look."""
        if not self.is_read:
            self.read()
        return self._values

    def read(self) -> None:
        self.know(_rows(self._using).value(self._claim.id))

    def know(self, text: str | bytes | None) -> None:
        """``text`` is what was saved last, ``None`` if nothing was."""
        self._values = read(text, self.envelope)
        self._kept = self._first = repr(self._values)
        self.is_read = True

    def save(self) -> bool:
        """Keep the present values; whether they are kept."""
        is_kept = save(self._using, self._claim, self.values, locked=self._hold.is_locked)
        if is_kept:
            self._kept = repr(self._values)
        return is_kept

    def undo(self) -> None:
        """A rollback has undone what was kept."""
        self._kept = self._first

    @property
    def is_changed(self) -> bool:
        """Whether the values are others than those that were read or kept last."""
        return self.is_read and repr(self._values) != self._kept
