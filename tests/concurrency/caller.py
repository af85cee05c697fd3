"""Those who call as often as they can: ``python -m tests.concurrency.caller ROLE CALLERS CALLS LIMIT PER``.

Each is a process. How many of its calls were allowed and refused is printed in one line of JSON.
"""

from __future__ import annotations

import sys

import django

django.setup()

from django.db import OperationalError, connection, transaction  # noqa: E402

from alkstore_django.rate_limits import Answer, try_acquire  # noqa: E402
from tests.concurrency.forks import run  # noqa: E402

NAME = "called"


def call(limit: int, per: int, number: int) -> Answer | None:
    return try_acquire(NAME, limit, per)


def in_a_transaction(limit: int, per: int, number: int) -> Answer | None:
    """Each third is taken back. MariaDB may end one of those who wait for what is taken back: a deadlock."""
    while True:
        try:
            with transaction.atomic():
                answer = try_acquire(NAME, limit, per)
                if number % 3 == 0:
                    transaction.set_rollback(True)
                    return None
            return answer
        except OperationalError as error:
            if connection.vendor != "mysql" or error.args[0] != 1213:
                raise


def calls(role: str, many: int, limit: int, per: int) -> dict[str, int]:
    answers = [globals()[role](limit, per, number) for number in range(many)]
    answers = [answer for answer in answers if answer is not None]
    allowed = sum(map(bool, answers))
    return {"allowed": allowed, "refused": len(answers) - allowed}


def main(role: str, callers: int, many: int, limit: int, per: int) -> None:
    run(calls, [(role, many, limit, per)] * callers)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
