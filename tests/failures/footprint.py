"""What a process takes of the machine and of its database, sample after sample."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

from tests.failures.homes import Home


@dataclass(frozen=True)
class Footprint:
    rss: int
    """Kilobytes; so is ``wal``."""
    files: int
    threads: int
    connections: int
    wal: int

    @classmethod
    def of(cls, pid: int, home: Home) -> Footprint:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return cls(
            rss=int(status["VmRSS"].split()[0]),
            files=len(os.listdir(f"/proc/{pid}/fd")),
            threads=int(status["Threads"]),
            connections=0 if home.vendor == "sqlite" else len(home.session_ids()),
            wal=_wal(home),
        )


TOLERANCE = {
    "rss": (1.05, 2048),
    "files": (1.0, 12),  # up to twenty coroutines at a time, each with a thread and a connection of its own
    "threads": (1.0, 12),
    "connections": (1.0, 12),
    "wal": (1.1, 1024),
}
"""By which factor, and how much more than that, the last third of a run may exceed the second."""


def growing(samples: list[Footprint]) -> list[str]:
    """What has not levelled off."""
    third = len(samples) // 3
    middle, end = samples[third : 2 * third], samples[2 * third :]
    found = []
    for name in (field.name for field in fields(Footprint)):
        before = max(getattr(each, name) for each in middle)
        after = max(getattr(each, name) for each in end)
        factor, more = TOLERANCE[name]
        if after > before * factor + more:
            found.append(f"{name}: {before}, then {after}")
    return found


def _wal(home: Home) -> int:
    wal = Path(f"{home.path}-wal")
    return wal.stat().st_size // 1024 if home.vendor == "sqlite" and wal.exists() else 0
