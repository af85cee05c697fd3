"""Rates, medians of a few repetitions, and tables of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

REPETITIONS = 3


def rate(n: int, work: Callable[[], object]) -> float:
    """How many of ``n`` things a second ``work`` does."""
    started = time.perf_counter()
    work()
    return n / (time.perf_counter() - started)


def medians(cases: dict[str, Callable[[], float]], repetitions: int = REPETITIONS) -> dict[str, float]:
    """Each case ``repetitions`` times, in turn, so that noise meets them all alike."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repetitions):
        for name, measure in cases.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}


def show(title: str, rates: dict[str, float], anchor: str) -> None:
    """A table of rates, and their ratio to the one named ``anchor``."""
    width = max(map(len, rates))
    print(f"\n{title}")
    for name, value in rates.items():
        print(f"  {name.ljust(width)}  {value:>12,.0f}/s  {value / rates[anchor]:>6.2f}", flush=True)


def columns(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n{title}")
    widths = [max(len(row[index]) for row in (head, *rows)) for index in range(len(head))]
    for row in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = row[0].ljust(widths[0])
        print("  " + "  ".join(cells), flush=True)
