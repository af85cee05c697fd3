"""Enqueue tasks until a file appears, like a busy site, and print how many they were.

python -m tests.concurrency.enqueuer NAME JOURNAL GATE
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import django


def main(name: str, journal: str, gate: str) -> None:
    django.setup()
    from tests.app import tasks

    for number in itertools.count():
        if Path(gate).exists():
            print(number)
            return
        tasks.write.enqueue(journal, f"{name}-{number}")
        time.sleep(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])
