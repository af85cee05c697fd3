"""One who calls as often as it can: ``python -m tests.concurrency.caller ROLE DIRECTORY CALLS LIMIT PER``.

It says that it is ready, waits for the file ``go``, and prints how many calls were allowed and refused.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import django

django.setup()

from django.db import connection, transaction  # noqa: E402

from alkstore_django.rate_limits import Answer, try_acquire  # noqa: E402

NAME = "called"


def call(limit: int, per: int, number: int) -> Answer | None:
    return try_acquire(NAME, limit, per)


def in_a_transaction(limit: int, per: int, number: int) -> Answer | None:
    """Each third is taken back."""
    with transaction.atomic():
        answer = try_acquire(NAME, limit, per)
        if number % 3 == 0:
            transaction.set_rollback(True)
            return None
    return answer


def main(role: str, directory: str, calls: int, limit: int, per: int) -> None:
    connection.ensure_connection()
    print("ready", flush=True)
    while not (Path(directory) / "go").exists():
        time.sleep(0.001)
    answers = [globals()[role](limit, per, number) for number in range(calls)]
    answers = [answer for answer in answers if answer is not None]
    allowed = sum(map(bool, answers))
    print(json.dumps({"allowed": allowed, "refused": len(answers) - allowed}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
