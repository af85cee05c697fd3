"""Keys of unique tasks: what was asked for, what is stored with the job, and how long a key is held.

A key belongs to a task, by its stored name, in one database; the queue does not count. Its digest is the
name of a row in a table of ours; the payload says it as well, so that a row that names the id of a job
of somebody else's is found out.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from .envelopes import Envelope, unseal
from .exceptions import UndecodablePayload
from .values import seconds

UNIQUE = "unique"
"""Our key in the envelope: ``{"digest": ..., "key": true or text, "for": ..., "on_conflict": ...}``, the
last two only where they are not the defaults."""

FINISHED, QUEUED = "finished", "queued"
EXISTING, IGNORE, REPLACE = "existing", "ignore", "replace"


class Key(NamedTuple):
    """A key by its digest, and for how long a job holds it: ``FINISHED``, ``QUEUED``, or seconds."""

    digest: str
    lasts: str | int

    @property
    def seconds(self) -> int | None:
        """For how long after the enqueue it is held at most; ``None`` where the job's state decides."""
        return self.lasts if isinstance(self.lasts, int) else None


# -- options ----------------------------------------------------------------------------------------------


def as_unique(value: object) -> bool | str | None:
    """The option ``unique``. Raises ``TypeError``, and ``ValueError`` for an empty key."""
    if value is None or isinstance(value, bool):
        return value or None
    if not isinstance(value, str):
        raise TypeError(f"unique must be a key (a string), True, False or None, not {value!r}.")
    if not value:
        raise ValueError("unique must not be an empty string: give a key, or False for none.")
    return str(value)


def as_lasting(value: object) -> str | int:
    """The option ``unique_for``. Raises ``TypeError`` and ``ValueError``."""
    if isinstance(value, str):
        return _one_of("unique_for", value, (FINISHED, QUEUED), " or seconds")
    return seconds("unique_for", value, low=1)


def as_conflict(value: object) -> str:
    """The option ``on_conflict``. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(value, str):
        raise TypeError(f"on_conflict must be a string, not {value!r}.")
    return _one_of("on_conflict", value, (EXISTING, IGNORE, REPLACE))


def _one_of(name: str, value: str, known: tuple[str, ...], more: str = "") -> str:
    if value not in known:
        raise ValueError(f"{name} must be {', '.join(map(repr, known))}{more}, not {value!r}.")
    return value


# -- in the payload ---------------------------------------------------------------------------------------


def stored(task: Any, envelope: Envelope) -> dict[str, Any]:
    """What the payload of a unique task says of its key."""
    said: dict[str, Any] = {"digest": digest(task, envelope), "key": task.unique}
    if task.unique_for != FINISHED:
        said["for"] = task.unique_for
    if task.on_conflict != EXISTING:
        said["on_conflict"] = task.on_conflict
    return said


def of_envelope(envelope: Envelope) -> Key | None:
    """The key of a job; ``None`` if it has none, or what another program made up."""
    said = envelope.extra.get(UNIQUE)
    if not isinstance(said, dict) or not isinstance(said.get("digest"), str):
        return None
    lasts = said.get("for", FINISHED)
    is_known = lasts in (FINISHED, QUEUED) or (type(lasts) is int and lasts > 0)
    return Key(said["digest"], lasts) if is_known else None


def of_payload(payload: str | bytes) -> Key | None:
    """The same for a payload, which may be anything."""
    try:
        return of_envelope(unseal(payload))
    except UndecodablePayload:
        return None


def options(envelope: Envelope) -> dict[str, Any]:
    """The options of a task as they were when its job was enqueued; only ``unique`` if it had no key."""
    key = of_envelope(envelope)
    if key is None:
        return {"unique": None}
    said = envelope.extra[UNIQUE]
    given, conflict = said.get("key"), said.get("on_conflict", EXISTING)
    return {
        "unique": given if given is True or isinstance(given, str) else None,
        "unique_for": key.lasts,
        "on_conflict": conflict if conflict in (IGNORE, REPLACE) else EXISTING,
    }


def kept(envelope: Envelope, ttl: int | None) -> int | None:
    """For how long the record of a finished job is kept, in seconds; ``None`` for ever. Not shorter than
    its key lasts: it tells that the job has succeeded."""
    key = of_envelope(envelope) if UNIQUE in envelope.extra else None
    return ttl if ttl is None or key is None else max(ttl, key.seconds or 0)


def digest(task: Any, envelope: Envelope) -> str:
    """The same for the same key of the same task, of any length; 64 hexadecimal digits."""
    if task.unique is True:
        named = ["arguments", _arguments(task, envelope.args, envelope.kwargs)]
    else:
        named = ["key", task.unique]
    text = json.dumps([envelope.task, *named], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _arguments(task: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The arguments by name, so that it does not matter how they were passed."""
    context = [None] if task.takes_context else []
    try:
        return _signature(task.func).bind(*context, *args, **kwargs).arguments
    except TypeError:  # a call that will fail: then as it was written
        return [args, kwargs]


def misfit(task: Any, args: Any, kwargs: Any) -> str:
    """Why a task cannot be called so; empty if it can."""
    context = [None] if task.takes_context else []
    try:
        _signature(task.func).bind(*context, *args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


@lru_cache(maxsize=1_000)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)
