"""Names of queues, locks, schedules, topics, channels, consumers and rate limits."""

from __future__ import annotations

import unicodedata

MAX_LENGTH = 191
"""Characters. MariaDB and MySQL key at most 767 bytes in old row formats: 191 of utf8mb4."""


def checked(kind: str, value: object) -> str:
    """``value`` when it may be written as a name; ``kind`` is the word for it in the message.

    1 to 191 characters, no control characters or lone surrogates, no white space at the ends: these
    are the names on which SQLite, PostgreSQL and MariaDB agree. Raises ``TypeError``, ``ValueError``.
    """
    if not isinstance(value, str):
        raise TypeError(f"A {kind} name must be a string, not {type(value).__name__}.")
    if not 1 <= len(value) <= MAX_LENGTH:
        raise ValueError(f"A {kind} name has 1 to {MAX_LENGTH} characters, this has {len(value)}.")
    if value != value.strip():
        raise ValueError(f"The {kind} name {value!r} begins or ends with white space.")
    if not value.isprintable():  # or it holds none of these
        for character in value:
            if unicodedata.category(character) in ("Cc", "Cs"):
                raise ValueError(f"The {kind} name {value!r} holds the control character {character!r}.")
    return str(value)


def is_text(value: str) -> bool:
    """Whether every database takes it as a parameter. Names of other programs may be none of ours, and are
    looked for all the same."""
    try:
        return "\0" not in value and value.encode() is not None
    except UnicodeEncodeError:  # a lone surrogate: bytes of the command line that are no UTF-8
        return False
