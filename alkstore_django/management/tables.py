"""Tables as the commands print them."""

from __future__ import annotations

from typing import Any


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]], *, texts: int = 1) -> str:
    """Columns that fit their widest value; the first ``texts`` to the left, numbers to the right."""
    cells = [head, *(tuple(printable(str(cell)) for cell in row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(head))]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if index < texts else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def printable(text: str) -> str:
    """On one line of a terminal: what controls it, or cannot be encoded, is shown as ``\\xNN``."""
    shown = (each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return "".join(shown)
