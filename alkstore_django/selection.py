"""Which queues ``--queue`` and ``--exclude-queue`` mean: names, ``*`` and ``prefix*``, in comma lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .names import checked

OUTBOXES = "_outbox:"
"""What the queues of outboxes begin with: a mere ``*`` leaves them out."""

_COMMA = re.compile(r"(?<!\\),")
_STAR = re.compile(r"(?<!\\)\*")
_ESCAPED = re.compile(r"\\([*,])")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One name, or with ``is_open`` every name that begins with ``start``."""

    start: str
    is_open: bool

    @classmethod
    def of(cls, text: str) -> Pattern:
        """Raises ``ValueError`` for what can be no queue's name and for a star elsewhere than at the end."""
        start, *rest = _STAR.split(text)
        if rest not in ([], [""]):
            raise ValueError(
                f"--queue takes names, '*' and 'prefix*', not {text!r}. Write '\\*' for a star in a name."
            )
        start = _ESCAPED.sub(r"\1", start)
        if text != "*":
            checked("queue", f"{start}*" if rest else start)
        return cls(start, is_open=bool(rest))

    def matches(self, name: str) -> bool:
        if not self.is_open:
            return name == self.start
        return name.startswith(self.start) and (self.start != "" or not name.startswith(OUTBOXES))


class Selection:
    """The queues that were asked for, in order of precedence; one that several patterns match counts at
    the first. Raises ``ValueError`` for a bad pattern."""

    def __init__(self, wanted: Sequence[str], excluded: Sequence[str] = ()) -> None:
        self._wanted = _patterns(wanted)
        self._excluded = _patterns(excluded)
        self.is_open = any(pattern.is_open for pattern in self._wanted)
        """Whether it depends on which queues there are."""

    def serves(self, name: str) -> bool:
        """Whether a queue of that name is served once it is there."""
        return any(each.matches(name) for each in self._wanted) and bool(self.without_excluded([name]))

    @property
    def exact(self) -> list[str]:
        """The queues that are named in full."""
        return self.without_excluded(pattern.start for pattern in self._wanted if not pattern.is_open)

    def among(self, present: Iterable[str]) -> list[str]:
        """The queues that are named in full, and those of ``present`` that a pattern matches: within one
        pattern by the alphabet."""
        names = sorted(present)
        found: list[str] = []
        for pattern in self._wanted:
            found += filter(pattern.matches, names) if pattern.is_open else [pattern.start]
        return self.without_excluded(found)

    def without_excluded(self, names: Iterable[str]) -> list[str]:
        allowed = (name for name in names if not any(each.matches(name) for each in self._excluded))
        return list(dict.fromkeys(allowed))


def escaped(name: str) -> str:
    """The pattern that means the one queue of that name."""
    return re.sub(r"([*,])", r"\\\1", name)


def _patterns(texts: Iterable[str]) -> list[Pattern]:
    return [Pattern.of(part) for text in texts for part in _COMMA.split(text)]
