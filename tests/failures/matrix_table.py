"""The kill matrix as a table: how often the task began in the repetitions of each cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tests.failures.moments import MOMENTS


def rows(cells: Iterable[Sequence[object]]) -> Iterator[str]:
    """``cells`` are vendor, signal, moment and starts of each repetition that went well."""
    seen: dict[tuple[object, object], dict[object, Counter[object]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for vendor, number, moment, starts in cells:
        seen[vendor, number][moment][starts] += 1
    yield f"{'':16}" + "".join(f"{moment:>26}" for moment in MOMENTS)
    for (vendor, number), by_moment in sorted(seen.items(), key=str):
        line = "".join(f"{_told(by_moment[moment]):>26}" for moment in MOMENTS)
        yield f"{vendor!s:11}{number!s:5}{line}"


def _told(starts: Counter[object]) -> str:
    return ", ".join(f"{times} x {count}" for count, times in sorted(starts.items(), key=str)) or "-"
