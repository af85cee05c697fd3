"""Enqueue events under many keys, in transactions, and print the order of each key as it was committed.

python -m tests.concurrency.writer NAME JOURNAL EVENTS KEYS POISON
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import django


def main(name: str, journal: str, events: str, keys: str, poison: str) -> None:
    django.setup()
    from django.db import transaction

    from alkstore_django.models import OutboxKey
    from alkstore_django.models.base import retrying
    from tests.app.outboxes import write

    dice = random.Random(name)
    told: list[list[Any]] = []
    for number in range(int(events)):
        key = dice.randrange(int(keys))
        payload: dict[str, Any] = {"path": journal, "n": f"{name}-{number}"}
        if key == 0 and number > int(events) // 4:
            payload["poison"] = poison

        def put(key: int = key, payload: dict[str, Any] = payload) -> int:
            with transaction.atomic():
                write.enqueue(payload, key=key)
                return OutboxKey.objects.get(queue=write.queue_name, event_key=str(key)).sequence

        told.append([key, retrying("default", put), payload["n"]])
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
