"""Those who run tasks: threads for sync ones, one event loop for coroutines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextvars import Context
from typing import Any

from alkstore_django.turns import Outcome, Verdict

from .async_execution import Why
from .attempts import crashed, execute
from .batches import execute_batch
from .event_loop import EventLoop
from .execution import Assignment, Execution
from .kinds import Kind, Kinds
from .threads import Threads
from .wake.inbox import Inbox
from .watch import Watch


class Executors:
    """``threads`` threads and room for ``coroutines`` coroutines, and what they have in hand.

    ``finished`` carries outcomes to the clerk, who waits there.
    """

    def __init__(self, threads: int, coroutines: int, interrupted: Callable[[], None]) -> None:
        self._interrupted = interrupted
        self.finished = Inbox()
        self.stuck: list[Execution] = []
        """Attempts that went on although their time was over."""
        self.watch = Watch(self._stick)
        self.kinds = Kinds()
        self.threads = Threads(threads, self._run, self.finished.put)
        self.loop = EventLoop(coroutines, self.watch, self.finished.put, interrupted)
        self.pools = {Kind.SYNC: self.threads, Kind.ASYNC: self.loop}

    def start(self) -> None:
        self.threads.start()

    def kind(self, claim: Any) -> Kind:
        """Which pool a claim is for."""
        return self.kinds.of_claim(claim)

    def hand_out(self, assignments: list[Assignment]) -> None:
        suitable: dict[Kind, list[Assignment]] = {kind: [] for kind in Kind}
        for assignment in assignments:
            kind = self.kind(assignment.claim)
            self.kinds.note(assignment.claim, kind)
            if self.kinds.batches:
                assignment.batch = self.kinds.batch(assignment.claim)
            suitable[kind].append(assignment)
        for kind, some in suitable.items():
            if some:
                self.pools[kind].hand_out(some)

    def take_back(self, claims: Iterable[Any] | None = None, kinds: Iterable[Kind] = Kind) -> list[Any]:
        """The claims (of ``claims``) that have not started; none will."""
        wanted = None if claims is None else list(claims)
        return [claim for kind in kinds for claim in self.pools[kind].take_back(wanted)]

    def running(self) -> list[Any]:
        """The claims whose tasks run now."""
        return [assignment.claim for assignment in self._assignments()]

    def close(self) -> None:
        """Let all end. What is idle has ended on return."""
        self.threads.close()
        self.loop.close()
        self.watch.close()

    def _run(self, assignment: Assignment) -> list[Outcome]:
        """In a thread: run the task, or leave it to the loop if it turns out to be a coroutine."""
        try:
            if assignment.companions:
                return Context().run(execute_batch, [assignment, *assignment.companions], self.watch)
            if self.kinds.of_claim_once_imported(assignment.claim) is Kind.ASYNC:
                self.kinds.note(assignment.claim, Kind.ASYNC)
                self.loop.hand_out([assignment])
                return []
            return [Context().run(execute, assignment, self.watch)]
        except KeyboardInterrupt:
            # Somebody wants the process to end, not the task to fail: put it back, and stop.
            self._interrupted()
            return [Outcome(each.claim, Verdict.INTERRUPT) for each in (assignment, *assignment.companions)]
        except BaseException as error:  # the thread is to live on
            return [crashed(each.claim, "", error) for each in (assignment, *assignment.companions)]

    @property
    def go_on(self) -> bool:
        """Whether something of a task goes on, so that Python would not end, or not by itself."""
        return bool(self.running()) or self.loop.has_left_something

    # -- what cannot go on ------------------------------------------------------------------------

    def lose(self, claims: Iterable[Any]) -> None:
        """Tell the tasks of these claims that others have them. Coroutines are cancelled."""
        lost = {claim.key for claim in claims}
        for assignment in self._assignments():
            if assignment.claim.key in lost:
                assignment.hold.is_lost = True
        self.loop.cancel(lost, Why.LOST)

    def tell_of_stop(self) -> None:
        """Tell what runs that the worker stops."""
        for assignment in self._assignments():
            assignment.hold.is_stopping = True

    def cut_off(self, claims: Iterable[Any]) -> list[Any]:
        """Interrupt the code of the atomic runs of these claims; those that have not ended yet."""
        wanted = {claim.key for claim in claims}
        going = [each for each in self._assignments() if each.claim.key in wanted]
        for assignment in going:
            if assignment.hold.cut_off is not None:
                assignment.hold.cut_off()
        return [assignment.claim for assignment in going]

    def interrupt(self, claims: Iterable[Any]) -> None:
        """Cancel the coroutines of these claims; threads end with the process."""
        self.loop.cancel({claim.key for claim in claims}, Why.STOP)

    def give_up(self) -> list[Any]:
        """Once nothing else runs, judge the attempts that go on although their time is over.

        Their outcomes come as all do. Returned are claims that will have none: what runs has locked
        their rows, and only the end of the process lets go of them.
        """
        running = {assignment.claim.key for assignment in self._assignments()}
        if running - {execution.claim.key for execution in self.stuck}:
            return []
        stuck = [each for each in self.stuck if each.claim.key in running and not each.is_given_up]
        for execution in stuck:
            execution.is_given_up = True
            threading.Thread(target=self._judge, args=[execution], daemon=True).start()
        return [execution.claim for execution in stuck if execution.assignment.hold.is_locked]

    def _judge(self, execution: Execution) -> None:
        claim, outcome = execution.claim, None
        try:
            if not execution.assignment.hold.is_locked:
                outcome = Context().run(execution.give_up)
        except BaseException as error:
            outcome = crashed(claim, execution.envelope.task, error)
        for pool in self.pools.values():
            pool.forget(execution.assignment)
        self.finished.put(outcome)

    def _stick(self, execution: Execution) -> None:
        """Called by the watch."""
        self.stuck += [execution, *execution.companions]
        self.finished.put(None)

    def _assignments(self) -> list[Assignment]:
        return [each for pool in self.pools.values() for each in pool.running()]
