"""Many keys, four writers, three workers, and one key that is poisoned: the others arrive in order."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from django.core.management import call_command

from alkstore_django.models import DeadJob, Job, OutboxEvent
from tests.app.outboxes import write
from tests.processes import Journal, Workers

pytestmark = pytest.mark.django_db(transaction=True)

EVENTS = int(os.environ.get("ALKSTORE_EVENTS", "1000"))
"""Of all writers."""

KEYS, WRITERS, WORKERS = 100, 4, 3
SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.e2e.relaying"}
PATIENCE = 60 + EVENTS / 20


def arrived(journal: Journal) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for line in journal.lines:
        key, name = line.split()
        found[int(key)].append(name)
    return found


def test_one_poisoned_key_of_many(workers: Workers, journal: Journal, tmp_path: Path) -> None:
    poison = tmp_path / "poison"
    poison.touch()
    some = [
        workers.start("--interval", 0.1, command="alkrelay" if n else "alkworker", **SETTINGS)
        for n in range(WORKERS)
    ]
    line = ("-m", "tests.concurrency.writer")
    each = EVENTS // WRITERS
    writers = [workers.run(*line, f"w{n}", journal.path, each, KEYS, poison) for n in range(WRITERS)]
    sent: dict[int, dict[int, str]] = defaultdict(dict)
    for writer in writers:
        assert writer.join(patience=PATIENCE) == 0, writer
        for key, sequence, name in json.loads(writer.lines[-1]):
            sent[key][sequence] = name
    expected = {key: [name for _, name in sorted(names.items())] for key, names in sent.items()}
    assert all(sorted(names) == list(range(1, len(names) + 1)) for names in sent.values())

    def is_blocked() -> bool:
        return not OutboxEvent.objects.exclude(event_key="0").exists() and DeadJob.objects.count() == 1

    workers.wait_until(is_blocked, "all has arrived but one key", patience=PATIENCE)
    found = arrived(journal)
    (blocked,) = write.blocked()
    assert (blocked.key, blocked.waiting) == ("0", Job.objects.count() + 1)
    assert {key: names for key, names in found.items() if key} == {
        key: names for key, names in expected.items() if key
    }
    assert found[0] == expected[0][: len(found[0])] != expected[0]
    poison.unlink()
    call_command("alkrequeue", queue=[write.queue_name], noinput=True, verbosity=0)
    workers.wait_until(lambda: not Job.objects.exists(), "the last key has arrived", patience=PATIENCE)
    assert [worker.stop() for worker in some] == [0] * WORKERS
    assert arrived(journal) == expected
    assert not DeadJob.objects.exists() and not OutboxEvent.objects.exists()
