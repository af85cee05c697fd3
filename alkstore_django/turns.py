"""A worker's turn: settle what has finished and claim what is next, in one short transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError

from .models import Attempt, Claim, DeadJob, Entry, Job
from .models.base import in_transaction, is_refused, let_go_after, retrying
from .outcomes import Outcome, Verdict
from .settling import settle, settle_alone

__all__ = ["Outcome", "Renewal", "Turn", "Verdict", "Wish"]


@dataclass(frozen=True, slots=True)
class Wish:
    """Up to ``n`` jobs of a queue, each to be held for ``visibility`` seconds."""

    queue: str
    n: int
    visibility: int
    tasks_only: bool = True


@dataclass(frozen=True, slots=True)
class Renewal:
    """A claim to hold for ``extend`` seconds from now."""

    claim: Claim
    extend: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn did: ``lost`` are claims that were no longer held, ``claims`` the new ones."""

    lost: list[Claim] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Work:
    outcomes: Sequence[Outcome]
    renewals: Sequence[Renewal]
    wishes: Sequence[Wish]
    room: int

    def lost(self, keys: Collection[tuple[int, int]]) -> list[Claim]:
        claims = [each.claim for each in self.outcomes] + [each.claim for each in self.renewals]
        return [claim for claim in claims if claim.key in keys]


def take(
    using: str,
    worker_id: str,
    outcomes: Sequence[Outcome],
    wishes: Sequence[Wish],
    room: int,
    renewals: Sequence[Renewal] = (),
) -> Turn:
    """Settle ``outcomes``, hold ``renewals`` and claim up to ``room`` jobs in the order of ``wishes``.

    All of it or nothing; each outcome and renewal is of another claim. If the database refuses the data
    of an outcome, each is settled by itself, so that a result that cannot be stored never holds up
    the others, and nothing is claimed.
    """
    work = _Work(outcomes, renewals, wishes, room)
    try:
        if Job.turns.db_manager(using).is_possible:
            return _take_at_once(using, worker_id, work)
        if not outcomes and not (wishes and room):
            return Turn(_renew_each(using, worker_id, renewals))
        return in_transaction(using, lambda: _take_step_by_step(using, worker_id, work))
    except DatabaseError as error:
        if not is_refused(using, error):
            raise
        let_go_after(using, error)
        lost = [claim for outcome in outcomes for claim in settle_alone(using, worker_id, outcome)]
        return Turn(lost + _renew_each(using, worker_id, renewals))


_SIMPLE = (Verdict.ACK, Verdict.GIVE_BACK)


def _take_at_once(using: str, worker_id: str, work: _Work) -> Turn:
    """How most claims end is written by one statement; how the others do, in the same transaction."""
    turns = Job.turns.db_manager(using)
    entries = [_entry(each) for each in work.outcomes if each.verdict in _SIMPLE]
    entries += [Entry.renew(each.claim, each.extend) for each in work.renewals]
    rest = [each for each in work.outcomes if each.verdict not in _SIMPLE]
    wishes = [(each.queue, each.n, each.visibility, each.tasks_only) for each in work.wishes]

    def together() -> Turn:
        lost = {claim.key for claim in settle(using, worker_id, rest)}
        held, claims = turns.take(worker_id, entries, wishes, work.room)
        lost |= {entry[:2] for entry in entries} - held
        return Turn(work.lost(lost), claims)

    return in_transaction(using, together) if rest or not turns.is_atomic else together()


def _entry(outcome: Outcome) -> Entry:
    if outcome.verdict is Verdict.GIVE_BACK:
        return Entry.give_back(outcome.claim)
    return Entry.ack(outcome.claim, outcome.task, outcome.duration_ms, outcome.ttl, outcome.value)


def _take_step_by_step(using: str, worker_id: str, work: _Work) -> Turn:
    lost = settle(using, worker_id, work.outcomes)
    lost += _renew_each(using, worker_id, work.renewals)
    return Turn(lost, _claim(using, worker_id, work.wishes, work.room))


def _renew_each(using: str, worker_id: str, renewals: Sequence[Renewal]) -> list[Claim]:
    lost = []
    for extend in {each.extend for each in renewals}:
        lost += renew(using, worker_id, [each.claim for each in renewals if each.extend == extend], extend)
    return lost


def _claim(using: str, worker_id: str, wishes: Sequence[Wish], room: int) -> list[Claim]:
    jobs = Job.objects.db_manager(using)
    claims: list[Claim] = []
    for wish in wishes:
        n = min(wish.n, room - len(claims))
        if n > 0:
            claims += jobs.claim_pending(
                wish.queue, worker_id, n, wish.visibility, tasks_only=wish.tasks_only
            )
    return claims


def renew(using: str, worker_id: str, claims: Sequence[Claim], extend: int) -> list[Claim]:
    """Hold claims for ``extend`` seconds from now; those that were lost."""
    jobs = Job.objects.db_manager(using)
    keys = [claim.key for claim in claims]

    def extend_all() -> bool:
        return jobs.renew(worker_id, keys, extend) == len(claims)

    def those_lost() -> list[Claim]:
        if extend_all():
            return []
        held = jobs.lock_held(worker_id, keys)
        return [claim for claim in claims if claim.key not in held]

    # By itself, one statement, nothing is locked while this process may be held up.
    return [] if retrying(using, extend_all) else in_transaction(using, those_lost)


def reclaim_one(using: str, worker_id: str, wish: Wish) -> Claim | None:
    """Claim one job whose previous claim lapsed; such jobs without a future go to the dead letters."""
    jobs, dead = Job.objects.db_manager(using), DeadJob.objects.db_manager(using)

    def reclaim() -> Claim | None:
        lapsed = jobs.lapsed_claims(wish.queue, wish.n, tasks_only=wish.tasks_only)
        hopeless = _hopeless(lapsed)
        dead.bury_lapsed(hopeless)
        again = [pair for pair in lapsed if pair not in hopeless][:1]
        return next(iter(jobs.reclaim(dead.bury_lapsed(again), worker_id, wish.visibility)), None)

    return in_transaction(using, reclaim)


def bury_hopeless(using: str, wish: Wish) -> int:
    """Bury lapsed jobs of a queue that have expired or have no attempt left; how many."""
    jobs, dead = Job.objects.db_manager(using), DeadJob.objects.db_manager(using)

    def bury() -> int:
        hopeless = _hopeless(jobs.lapsed_claims(wish.queue, wish.n, tasks_only=wish.tasks_only))
        dead.bury_lapsed(hopeless)
        return len(hopeless)

    return in_transaction(using, bury)


def _hopeless(lapsed: Sequence[tuple[Claim, bool]]) -> list[tuple[Claim, bool]]:
    return [pair for pair in lapsed if pair[1] or pair[0].attempts >= pair[0].max_attempts]


def held_by(using: str, worker_id: str, queues: Sequence[str]) -> list[Claim]:
    """Every claim in these queues that the worker holds according to the database."""
    jobs = Job.objects.db_manager(using)
    return [claim for queue in queues for claim in jobs.held_by(worker_id, queue)]


def queues(using: str) -> list[str]:
    """The queues that have live jobs: a read of a few index entries for each."""
    return Job.objects.db_manager(using).queues()


def has_task(using: str, queue: str) -> bool:
    """Whether any live job of a queue is a task: a read that passes those that are none."""
    return Job.objects.db_manager(using).any_task(queue)


def has_lapsed(using: str, wishes: Sequence[Wish]) -> bool:
    """Whether there are lapsed claims to take; not those of atomic runs, which nobody can take."""
    jobs = Job.objects.db_manager(using)

    def look() -> bool:
        return any(jobs.any_lapsed(wish.queue, tasks_only=wish.tasks_only) for wish in wishes)

    return retrying(using, look)


def is_settled(using: str, wishes: Sequence[Wish]) -> bool:
    """Whether no job of these queues runs, is due, or waits for a retry."""
    jobs = Job.objects.db_manager(using)
    return not any(jobs.any_unsettled([wish.queue], tasks_only=wish.tasks_only) for wish in wishes)


def history(using: str, claims: Sequence[Claim]) -> dict[int, list[Any]]:
    """The attempts so far, in their present life, of claims that are not their first."""
    again = [claim.id for claim in claims if claim.attempts > 1]
    return Attempt.objects.db_manager(using).present_life(again) if again else {}
