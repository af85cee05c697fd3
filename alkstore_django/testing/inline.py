"""``InlineWorker``: claim, execute and settle in the calling thread, by the statements of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context, copy_context
from typing import Any

from asgiref.sync import async_to_sync
from django.utils import timezone, translation

from alkstore_django import pauses, served, sweeps, turns
from alkstore_django.contexts import Hold
from alkstore_django.models import Claim, Job
from alkstore_django.models.base import in_transaction
from alkstore_django.runtime.attempts import crashed, prepared
from alkstore_django.runtime.execution import Assignment, Execution
from alkstore_django.runtime.kinds import Kind, Kinds
from alkstore_django.runtime.leases import Leases
from alkstore_django.runtime.options import new_worker_id
from alkstore_django.runtime.relays import Relays
from alkstore_django.runtime.watch import Watch
from alkstore_django.turns import Outcome, Verdict, Wish

from .executions import InlineAsyncExecution, InlineAtomicRuns, InlineExecution
from .ran import Ran, ran
from .transactions import intact
from .travelling import now

VISIBILITY = 300
"""Seconds that a claim of a test holds."""

OUTBOX = "_outbox:"


class InlineWorker:
    """Runs jobs of one database, one at a time. ``with`` it, to end its watch over timeouts."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.worker_id = new_worker_id()
        self._watch = Watch(lambda execution: None)
        self._atomics = InlineAtomicRuns(
            using, Leases(self.worker_id, lambda claim: VISIBILITY), lambda claim: VISIBILITY
        )
        self._kinds = Kinds()
        self._relays = Relays(using)

    def __enter__(self) -> InlineWorker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._watch.close()

    # -- which ------------------------------------------------------------------------------------

    def queues(self, wanted: Sequence[str] | None = None) -> list[str]:
        """Those to serve now: of the wanted ones, or of all but outboxes, those that are not paused."""
        found = wanted
        if found is None:
            found = [queue for queue in turns.queues(self.using) if not queue.startswith(OUTBOX)]
        paused = {pause.queue for pause in pauses.paused(self.using)}
        return [queue for queue in found if queue not in paused]

    def sweep(self, queues: Sequence[str]) -> None:
        """Bury what has expired."""
        for wish in self._wishes(queues):
            while sweeps.sweep(self.using, wish.queue, tasks_only=wish.tasks_only) >= sweeps.BATCH:
                pass

    def claim_next(self, queues: Sequence[str]) -> Claim | None:
        """Claim what a worker would claim next."""
        wishes = self._wishes(queues)
        if claims := turns.take(self.using, self.worker_id, [], wishes, 1).claims:
            return claims[0]
        lapsed = (turns.reclaim_one(self.using, self.worker_id, wish) for wish in wishes)
        return next((claim for claim in lapsed if claim is not None), None)

    def claim(self, job_id: int) -> Claim | None:
        """Claim that job, if it is due and its queue is not paused."""
        jobs = Job.objects.db_manager(self.using)

        def take() -> Claim | None:
            claim = jobs.lock(job_id)
            if claim is None or not jobs.filter(pk=job_id, state=Job.PENDING).exists():
                return None
            moment = now(self.using)
            if claim.run_at > moment or (claim.expires_at is not None and claim.expires_at <= moment):
                return None
            return next(iter(jobs.reclaim([claim], self.worker_id, VISIBILITY)), None)

        waiting = jobs.filter(pk=job_id).values_list("queue", flat=True)
        return in_transaction(self.using, take) if self.queues(list(waiting)) else None

    def _wishes(self, queues: Sequence[str]) -> list[Wish]:
        handled = served.handled_queues(self.using)
        return [Wish(queue, 1, VISIBILITY, tasks_only=queue not in handled) for queue in queues]

    # -- run it -----------------------------------------------------------------------------------

    def run(self, claim: Claim) -> Ran:
        """Run a claimed job and write how it ended. ``KeyboardInterrupt`` goes through, the job put back."""
        history = turns.history(self.using, [claim]).get(claim.id, ())
        key = self._relays.keys_of([claim]).get(claim.id)
        assignment = Assignment(claim, self._atomics, history, Hold(self._renew), key=key)
        try:
            with intact():
                outcome, execution = _context().run(self._execute, assignment)
        except KeyboardInterrupt:
            self._settle(Outcome(claim, Verdict.INTERRUPT))
            raise
        is_lost = not outcome.is_written and not self._settle(outcome)
        self._relays.settled([outcome], [claim] if is_lost else [])
        self._relays.move_on()
        return ran(self.using, outcome, execution, getattr(execution, "error", None), is_lost=is_lost)

    def _execute(self, assignment: Assignment) -> tuple[Outcome, Any]:
        is_async = self._kinds.of_claim_once_imported(assignment.claim) is Kind.ASYNC

        def make() -> Execution:
            if is_async:
                return InlineAsyncExecution(assignment, self._watch, _context())
            return InlineExecution(assignment, self._watch)

        execution: Any = prepared(assignment.claim, make)
        if isinstance(execution, Outcome):
            return execution, None
        try:
            return (_run_coroutine(execution) if is_async else execution.run()), execution
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            execution.error = error
            return crashed(assignment.claim, execution.envelope.task, error), execution

    def _settle(self, outcome: Outcome) -> bool:
        """Whether the claim was still held."""
        return not turns.take(self.using, self.worker_id, [outcome], [], 0).lost

    def _renew(self, claim: Any, extend: int | None) -> bool:
        return Job.objects.db_manager(self.using).heartbeat(claim, extend or VISIBILITY)


def _context() -> Context:
    """A copy of the test's, in which nothing is active of what a worker would not know.

    Not a fresh one: in an async test asgiref finds by context variables which thread waits for what.
    """
    context = copy_context()
    context.run(translation.deactivate)
    context.run(timezone.deactivate)
    return context


def _run_coroutine(execution: InlineAsyncExecution) -> Outcome:
    async def run() -> tuple[Outcome | None, BaseException | None]:
        execution.context = _context()
        try:
            return await execution.arun(), None
        except BaseException as error:  # a KeyboardInterrupt would end the loop itself
            return None, error

    outcome, error = async_to_sync(run)()
    if outcome is None:
        raise error or AssertionError("a run has an outcome or an error")
    return outcome
