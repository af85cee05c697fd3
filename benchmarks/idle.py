"""What an idle worker costs: processor time and memory."""

from __future__ import annotations

import time
from pathlib import Path

from .database import clear
from .measure import columns
from .processes import Helper


def run(quick: bool) -> None:
    clear()
    seconds = 2 if quick else 15
    helper = Helper("work")
    time.sleep(3)  # it has looked at everything once
    before = _processor(helper.pid)
    time.sleep(seconds)
    used = _processor(helper.pid) - before
    peak = _peak_mb(helper.pid)
    helper.go()
    helper.result()
    columns(
        "An idle alkworker",
        ("", "processor s per 30 s", "peak MB"),
        [("default", f"{used * 30 / seconds:.3f}", f"{peak:.1f}")],
    )


def _processor(pid: int) -> float:
    """Seconds that the threads of a process have run; to the nanosecond, not in ticks of 10 ms."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def _peak_mb(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024
