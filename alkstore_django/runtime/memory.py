"""How much memory this process occupies, without a library for it."""

from __future__ import annotations

import os
import sys

STATM = "/proc/self/statm"


def resident() -> int | None:
    """Bytes in RAM: now on Linux, the most so far on macOS and the BSDs, ``None`` where nobody tells."""
    try:
        with open(STATM, "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak()


def peak() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024
