"""What earlier attempts have told, for coroutines that take their context: they cannot ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alkstore_django import metadata, registry
from alkstore_django.envelopes import task_name
from alkstore_django.tasks import stored_name

from .kinds import Kind, Kinds, of_task


class Records:
    """Reads the metadata of claimed jobs, where it may be wanted: one small statement for all of them."""

    def __init__(self, using: str, kinds: Kinds) -> None:
        self._using = using
        self._kinds = kinds
        self._version = -1
        self._names: frozenset[str] = frozenset()

    def of(self, claims: Sequence[Any]) -> dict[int, tuple[str | bytes | None, ...]]:
        """By job id, ``(text,)`` or ``(None,)``; nothing for those that may ask for themselves."""
        if self._version != (version := registry.version()):
            takers = [each for each in registry.declared() if each.takes_context]
            self._names = frozenset(stored_name(each) for each in takers if of_task(each) is Kind.ASYNC)
            self._version = version
        if not self._names:
            return {}
        coroutines = [claim for claim in claims if self._kinds.of_claim(claim) is Kind.ASYNC]
        ids = [claim.id for claim in coroutines if task_name(claim.payload) in self._names]
        saved = metadata.saved(self._using, ids) if ids else {}
        return {job_id: (saved.get(job_id),) for job_id in ids}
