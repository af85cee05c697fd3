"""What a worker has in hand: claims, the tasks that run for them, and outcomes that are not settled yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alkstore_django.turns import Outcome, Renewal, Verdict

from .atomic_runs import AtomicRuns
from .executors import Executors
from .heartbeats import Heartbeats
from .leases import Leases
from .outcomes import Outcomes
from .plan import Plan


class Hand:
    """Touches no table: what it decides goes into the next turn of the clerk."""

    def __init__(self, using: str, worker_id: str, plan: Plan, executors: Executors) -> None:
        self.executors = executors
        self._own_visibility = plan.own_visibility
        self.leases = Leases(worker_id, plan.own_visibility)
        self.atomics = AtomicRuns(using, self.leases, plan.own_visibility)
        self.heartbeats = Heartbeats(lambda: executors.finished.put(None))
        self.outcomes = Outcomes()
        self.started = self.interrupted = 0

    @property
    def is_busy(self) -> bool:
        return bool(self.leases or self.outcomes or self.executors.running())

    def has_settled(self) -> bool:
        """Whether any job of this worker has come to its end."""
        return self.started > len(self.leases)

    def holds(self, claim: Any) -> bool:
        """Whether a claim is held, or its task still runs."""
        return claim in self.leases or claim in self.executors.running()

    def running(self) -> list[Any]:
        """The claims of tasks that run and count."""
        return [claim for claim in self.executors.running() if claim in self.leases]

    def renewals(self) -> list[Renewal]:
        """Claims to hold longer; those that are about to be settled need it not."""
        wanted = self.leases.due() | self.heartbeats.wanted(self._own_visibility)
        held = [claim for claim in wanted if claim in self.leases and claim not in self.outcomes]
        return [Renewal(claim, wanted[claim]) for claim in held]

    def lose(self, lost: Sequence[Any]) -> None:
        """Let go of claims that others have by now. What runs of them is told, threads cannot be stopped."""
        if lost:
            self.executors.lose(lost)
            self.started -= len(self.take_back(lost))
            self.leases.lose(lost)

    def take_back(self, claims: Sequence[Any] | None = None) -> list[Any]:
        """The claims (of ``claims``) that have not started; none will."""
        return self.executors.take_back(claims) + self.atomics.take_back(claims)

    def put_back(self, claims: Sequence[Any]) -> None:
        """Claims that have not started, and will not: their attempts are given back."""
        self.started -= len(claims)
        self.outcomes.add(Outcome(claim, Verdict.GIVE_BACK) for claim in claims)

    def settled(self, outcomes: Sequence[Outcome], lost: Sequence[Any]) -> list[Outcome]:
        """These were settled, but for claims that were ``lost``. Those that were interrupted."""
        self.outcomes.clear()
        self.lose(self.atomics.not_settled(lost))
        self.leases.drop(outcome.claim for outcome in outcomes)
        interrupts = [outcome for outcome in outcomes if outcome.verdict is Verdict.INTERRUPT]
        interrupted = [outcome for outcome in interrupts if outcome.claim not in lost]
        self.interrupted += len(interrupted)
        return interrupted

    # -- the end ----------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Put back what still runs, as far as its claim is ours: its outcome will not count.

        What has locked its own row is cut off, and tells of its end itself. If it does not, the end of the
        process undoes it, and its claim lapses.
        """
        going = self.executors.cut_off(self.atomics.close())
        if not self.atomics.may_unwind:
            self.interrupted += len(going)
            self.leases.drop(going)
        running = [claim for claim in self.running() if claim not in going]
        self.executors.interrupt(running)
        self.outcomes.add(Outcome(claim, Verdict.INTERRUPT) for claim in running)

    def give_up(self) -> None:
        """Let go of what goes on although its time is over, as soon as nothing else runs."""
        locked = self.executors.give_up()
        self.leases.drop(locked)
        self.atomics.given_up |= bool(locked)

    def abandon(self) -> None:
        """End without the database: the claims in hand lapse by themselves."""
        self.interrupted += len(self.leases)
