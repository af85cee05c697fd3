"""Events of one key in the order of their commits: each stands in line, and only the first can be claimed.

To put an event in line takes the key's row until the caller's transaction ends, so that the order of the
line is the order of the commits. The line moves on in a transaction of its own, after the first event was
settled, and waits for nobody: what is locked by then is tried again by whoever settled it, and found by a
sweep if that one is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from .models import Arrival, Blocked, Job, OutboxEvent, OutboxManager, Place
from .models import Lined as Lined
from .models.base import chunks, in_transaction
from .models.outbox import PARKED

BATCH = 500
"""Events that one sweep looks at."""

AT_ONCE = 100
"""Keys whose lines move on in one transaction."""

IDLE = 3_600
"""Seconds that a key without events is kept: somebody may be about to use it again."""


def add(using: str, queue: str, text: str, key: str, row: dict[str, int | None]) -> Arrival:
    """One event at the end of the line of its key."""

    def add() -> Arrival:
        sequence, waiting = _events(using).extend(queue, key, 1)
        run_at = PARKED if waiting > 1 else None
        arrival = Job.objects.db_manager(using).enqueue(queue, text, **{**row, "run_at": run_at})
        _events(using).add(queue, [Place(arrival.id, key, sequence)])
        return arrival

    return in_transaction(using, add)


def add_many(
    using: str, queue: str, texts: Sequence[str], keys: Sequence[str | None], row: dict[str, int | None]
) -> list[Arrival]:
    """Events, all or none, in the order of the texts. Keys are taken in one order by all who take several."""
    return in_transaction(using, lambda: _add_many(using, queue, texts, keys, row))


def _add_many(
    using: str, queue: str, texts: Sequence[str], keys: Sequence[str | None], row: dict[str, int | None]
) -> list[Arrival]:
    places: dict[int, tuple[str, int]] = {}
    parked: set[int] = set()
    numbers: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        if key is not None:
            numbers.setdefault(key, []).append(number)
    for key in sorted(numbers):
        last, waiting = _events(using).extend(queue, key, len(numbers[key]))
        first = last - len(numbers[key]) + 1
        places |= {number: (key, first + offset) for offset, number in enumerate(numbers[key])}
        parked |= set(numbers[key][0 if waiting > len(numbers[key]) else 1 :])
    found: dict[int, Arrival] = {}
    for run_at, wanted in (
        (None, [number for number in range(len(texts)) if number not in parked]),
        (PARKED, sorted(parked)),
    ):
        some = [texts[number] for number in wanted]
        made = Job.objects.db_manager(using).enqueue_many(queue, some, **{**row, "run_at": run_at})
        found |= dict(zip(wanted, made, strict=True))
    lined = sorted(places.items())
    _events(using).add(queue, [Place(found[number].id, *place) for number, place in lined])
    return [found[number] for number in range(len(texts))]


def are_used(using: str, queue: str) -> bool:
    """Whether any event of the queue has a key."""
    return _events(using).any(queue)


def of_jobs(using: str, job_ids: Sequence[int]) -> list[Lined]:
    """Where those of the jobs stand in line that have a key."""
    return _events(using).of_jobs(job_ids)


def move_on(using: str, ended: Iterable[Lined], skipping: Iterable[str]) -> list[Lined]:
    """Let the lines move on in which these stood that were settled; those whose keys are locked, for another
    try. In the queues ``skipping`` a dead letter stands in nobody's way."""
    skips, lines, left = set(skipping), dict[str, dict[str, list[int]]](), list[Lined]()
    for job_id, queue, key in ended:
        lines.setdefault(queue, {}).setdefault(key, []).append(job_id)
    for queue, line in sorted(lines.items()):
        for keys in chunks(sorted(line), AT_ONCE):
            jobs = {key: line[key] for key in keys}
            locked = in_transaction(using, partial(_move_on, using, queue, jobs, skips=queue in skips))
            left += [Lined(job_id, queue, key) for key in keys if key not in locked for job_id in line[key]]
    return left


def _move_on(using: str, queue: str, jobs: Mapping[str, Sequence[int]], *, skips: bool) -> Collection[str]:
    """The keys whose lines have moved on, if they could."""
    events = _events(using)
    locked = events.lock(queue, jobs)
    ids = [job_id for key in locked for job_id in jobs[key]]
    if locked and events.move_on(queue, locked, ids, skips=skips):
        Job.objects.db_manager(using).announce()
    return locked


def sweep(using: str, after: int, skipping: Sequence[str]) -> tuple[int, int]:
    """Look at ``BATCH`` events by job id, from ``after`` on, and let the lines move on whose first event was
    settled by somebody who did not care: another program, or a worker that was killed. The last id that was
    looked at (0: the end was reached), and how many were found."""
    last, ended = _events(using).walk(after, BATCH, skipping)
    move_on(using, ended, skipping)
    return last, len(ended)


def sweep_keys(using: str) -> int:
    """Delete up to ``BATCH`` keys that have no events, and had none for an hour; how many."""
    events = _events(using)
    idle = events.idle(IDLE, BATCH)
    return in_transaction(using, lambda: events.forget_idle(idle, IDLE)) if idle else 0


def count_keys(using: str) -> int:
    """How many keys ``sweep_keys`` would delete in all."""
    return _events(using).count_idle(IDLE)


def blocked(using: str, queue: str, n: int) -> list[Blocked]:
    """Up to ``n`` keys of a queue whose first event is a dead letter."""
    return _events(using).blocked(queue, n)


def _events(using: str) -> OutboxManager:
    return OutboxEvent.objects.db_manager(using)
