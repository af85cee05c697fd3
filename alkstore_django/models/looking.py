"""What the live table says to those who look, and how those are told to look who wait."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from alkstore_django.conf import settings

from .announcements import ring_after_commit
from .base import SQLManager, chunks, placeholders
from .claim import Claim
from .fields import number, readable


class LookingManager(SQLManager):
    """Reads of the live table, which take no lock."""

    def look(self, queues: Sequence[tuple[str, bool]]) -> list[tuple[float, float]]:
        """``Dialect.look`` for queues, each with whether only tasks count; infinite for never."""
        found: list[tuple[float, float]] = []
        for chunk in chunks(queues, 100):
            params = {f"q{index}": queue for index, (queue, _) in enumerate(chunk)}
            rows = self.fetch(self.dialect.look([tasks_only for _, tasks_only in chunk]), params)
            for _, due, lapses in sorted(rows):
                found.append((inf if due is None else float(due), inf if lapses is None else float(lapses)))
        return found

    def holders(self, ids: Sequence[int]) -> dict[int, tuple[str | None, int]]:
        """For each of these ids that is live, who has its claim, and the number of the attempt."""
        found: dict[int, tuple[str | None, int]] = {}
        for chunk in chunks(ids):
            names, params = placeholders(chunk)
            for job_id, worker_id, attempts in self.fetch(self.dialect.holders(names), params):
                found[int(job_id)] = readable(worker_id), number(attempts) or 0
        return found

    def with_ids(self, ids: Sequence[int]) -> list[Claim]:
        """The rows of these ids, by id."""
        names, params = placeholders(ids)
        claims = map(Claim.from_row, self.fetch(self.dialect.claims(names), params))
        return sorted(claims, key=lambda claim: claim.id)

    def walk(self, queues: Sequence[str], after: int, n: int) -> list[Claim]:
        """Up to ``n`` rows (of these queues, if any are named) by id, from the one after ``after`` on."""
        names, params = placeholders(queues, "q")
        rows = self.fetch(self.dialect.walk(names), params | {"after": after, "n": n})
        return [Claim.from_row(row) for row in rows]

    def data_version(self) -> int:
        """See ``Dialect.data_version``; only where there is one."""
        return int(self.fetch(self.dialect.data_version or "")[0][0])

    def any_lapsed(self, queue: str, *, tasks_only: bool = False) -> bool:
        """Whether there are lapsed claims whose rows nobody has locked. Locks nothing if there are none."""
        dialect, params = self.dialect, {"queue": queue}
        return bool(self.fetch(dialect.any_lapsed(tasks_only), params)) and (
            dialect.has_one_writer or bool(self.fetch(dialect.any_lapsed_unlocked(tasks_only), params))
        )

    def any_task(self, queue: str) -> bool:
        return bool(self.fetch(self.dialect.any_task, {"queue": queue}))

    def any_in(self, queue: str) -> bool:
        """Whether a queue has a live job, due or not."""
        return bool(self.fetch(self.dialect.any_job, {"queue": queue}))

    def oldest_due(self, queue: str, *, tasks_only: bool = False) -> int | None:
        """For how many seconds a job of the queue has been due, or its claim lapsed, at most."""
        looks = (self.dialect.oldest_due(tasks_only), self.dialect.oldest_lapsed(tasks_only))
        found = [number(self.fetch(look, {"queue": queue})[0][0]) for look in looks]
        return max((age for age in found if age is not None), default=None)

    def any_unsettled(self, queues: Sequence[str], *, tasks_only: bool = False) -> bool:
        names, params = placeholders(queues)
        return bool(self.fetch(self.dialect.unsettled(names, tasks_only), params))

    def queues(self) -> list[str]:
        """The queues that have rows, by the alphabet."""
        if self.dialect.finds_queues_in_one_statement:
            return sorted({readable(row[0]) or "" for row in self.fetch(self.dialect.queues)})
        found = [""]
        while rows := self.fetch(self.dialect.next_queue, {"after": found[-1]}):
            found.append(rows[0][0])
        return sorted(found[1:])

    def next_claim_at(self, queue: str) -> int:
        """Unix seconds at which the next row becomes claimable that is not so now; 0 for none."""
        (row,) = self.fetch(self.dialect.next_claim_at, {"queue": queue})
        due, ends = (number(value) or 0 for value in row)
        return min(filter(None, (due, ends and ends + 1)), default=0)

    def counts(self) -> list[tuple[str, int, int, int, int | None]]:
        """Per queue: ready, delayed and running jobs, and the age in seconds of the oldest due one."""
        found = []
        for queue, ready, delayed, running, since, now in self.fetch(self.dialect.counts):
            age = None if since is None else now - number(since)
            found.append((readable(queue) or "", int(ready), int(delayed), int(running), age))
        return found

    # -- those who wait ---------------------------------------------------------------------------

    def announce(self) -> None:
        """Wake the workers, once the transaction is committed, for jobs that were put back."""
        if self.notice:
            self.fetch(self.dialect.notify or "")
        ring_after_commit(self.database)

    @property
    def notice(self) -> str:
        """What an INSERT .. RETURNING gets at its end."""
        notice = self.dialect.notice
        return notice if notice and settings.NOTIFY else ""

    def listen(self, on: bool) -> None:
        """See ``Dialect.listen``; only where there is one."""
        begin, end = self.dialect.listen or ("", "")
        self.execute(begin if on else end)

    def listen_for_ends(self) -> None:
        """See ``Dialect.listen_for_ends``; only where there is one."""
        self.execute(self.dialect.listen_for_ends or "")
