"""The steps of one attempt, from its payload to an ``Outcome``. Touches no queue table."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from alkstore_django import alterations, handlers, origins
from alkstore_django.contexts import Hold
from alkstore_django.exceptions import TaskInterrupted, TaskTimedOut
from alkstore_django.failures import from_exception
from alkstore_django.keys import kept
from alkstore_django.logs import get_logger
from alkstore_django.metadata import Record
from alkstore_django.payloads import encode, normalised
from alkstore_django.registry import find
from alkstore_django.tasks import option
from alkstore_django.turns import Outcome, Verdict

from . import job_log, judging
from .atomic_run import AtomicRun
from .atomic_runs import AtomicRuns
from .forks import OneProcess
from .hygiene import CleanSurroundings, close_connections
from .observing import Observation
from .timeouts import Interruption, call_within, told
from .watch import GRACE, Watch

logger = get_logger("alkstore_django.worker")

STOPPED = "the worker was stopped, and the grace is over"


@dataclass(slots=True, eq=False)  # a frozen one takes three times as long to make
class Assignment:
    """A claim handed to an executor, with the attempts before it, and the worker's hold on it."""

    claim: Any
    atomics: AtomicRuns
    history: Sequence[Any] = ()
    hold: Hold = field(default_factory=Hold, compare=False)
    metadata: tuple[str | bytes | None, ...] = ()
    """What was saved of it before, if somebody has looked."""
    key: str | None = None
    """That of an event of an outbox."""
    batch: int = 1
    """How many events its outbox takes at once."""
    companions: Sequence[Assignment] = ()
    """Those that are delivered with it."""


class Execution:
    """The steps of one attempt: find the task, call it, judge how it ended, tell the observers.

    Raises ``UndecodablePayload``.
    """

    def __init__(self, assignment: Assignment, watch: Watch) -> None:
        self.started = time.monotonic()
        self.assignment = assignment
        self.claim = assignment.claim
        self.atomics = assignment.atomics
        self.envelope, self.handler = handlers.read(assignment.claim)
        self.watch = watch
        self.thread = threading.get_ident()
        self.is_given_up = False
        """Whether its outcome is known, although its code goes on."""
        self.companions: Sequence[Execution] = ()
        """Those that its call is for as well."""
        self.interruption: Interruption | None = None
        """What can cut it off in the middle, beside its time; for a run that only its own code can undo."""
        self.task: Any = None
        self.limit: float | None = None
        self.value: Any = None
        self.has_bad_value = False
        self.observation = Observation(assignment.claim, assignment.history)
        self.record = Record(self.atomics.using, self.claim, self.envelope, assignment.hold)
        if assignment.metadata:
            self.record.know(*assignment.metadata)

    def run(self) -> Outcome:
        try:
            self.find()
            self.limit = option(self.task, "timeout")
            if option(self.task, "atomic"):
                return AtomicRun(self, self.atomics).run()
            outcome = self.attempt()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # SystemExit too: a task that calls sys.exit() has failed, the worker goes on.
            if isinstance(error, TaskTimedOut):
                self.let_go_of_connections()
            outcome = self.judge(error)
            self.keep_metadata()
            self.tell_unless_given_up(outcome, error)
        else:
            self.keep_metadata()
            self.tell_unless_given_up(outcome)
        return outcome

    def find(self) -> None:
        self.task = self.handler or alterations.applied(find(self.envelope.task), self.envelope.extra)

    def let_go_of_connections(self) -> None:
        """After it was cut off, which may have been in the middle of a driver's work."""
        close_connections()

    def attempt(self) -> Outcome:
        """Call the task. Raises what it raises, and what is wrong with its return value."""
        self.begin()
        return self.accept(self.call())

    def begin(self) -> None:
        job_log.started(self.claim, self.envelope.task)
        self.observation.start(self.task, self.envelope)

    def accept(self, value: Any) -> Outcome:
        if self.handler and not self.handler.store_result:
            value = None
        try:
            self.value = normalised(value, "the return value")
            text = encode(self.value, "the return value")
        except Exception:  # also what a mapping raises while it is read
            self.has_bad_value = True
            raise
        return self.outcome(
            Verdict.ACK,
            value=text if option(self.task, "store_result") else None,
            ttl=kept(self.envelope, option(self.task, "result_ttl")),
        )

    def call(self) -> Any:
        def body() -> Any:
            if self.interruption is not None:
                self.assignment.hold.cut_off = partial(self.interruption.send, TaskInterrupted, STOPPED)
            with OneProcess(self.claim), origins.restored(self.envelope.extra):
                return self.task.call(*self.arguments(), **self.envelope.kwargs)

        return call_within(self.watch, self, self.limit, body, self.interruption)

    def arguments(self) -> list[Any]:
        if not self.task.takes_context:
            return self.envelope.args
        hold = self.assignment.hold
        if self.handler:
            return self.handler.arguments(self.claim, hold, self.envelope.args, self.assignment.key)
        return [self.observation.context(hold, self.record), *self.envelope.args]

    def keep_metadata(self) -> None:
        """Keep what the task has changed since it saved it last: the end of its run is one more save."""
        if self.record.is_read:
            self.observation.tell_metadata(self.record.values)
            if self.record.is_changed and not self.is_given_up:
                try:
                    self.record.save()
                except Exception as error:
                    # Its outcome is known, and is not to be another because of this.
                    logger.warning("Job id=%s: its metadata could not be kept: %s", self.claim.id, error)

    def judge(self, error: BaseException) -> Outcome:
        """Decide from the exception and the budget what comes next."""
        if self.has_bad_value:
            # The work is done: to run it again because of its return value would do it twice.
            return self.end(Verdict.DEAD, error)
        if isinstance(error, TaskInterrupted) and self.assignment.hold.is_cancelled:
            return self.outcome(Verdict.INTERRUPT)
        verdict, delay = judging.verdict(error, self.claim, self.task)
        if verdict is Verdict.RETRY:
            return self.outcome(verdict, delay=delay, failure=from_exception(error))
        return self.end(verdict, error)

    def end(self, verdict: Verdict, error: BaseException) -> Outcome:
        return self.outcome(verdict, failure=from_exception(error), ttl=option(self.task, "result_ttl"))

    def tell(self, outcome: Outcome, error: BaseException | None = None) -> None:
        """Tell the observers; of an error while it is handled, since receivers ask ``sys.exc_info``."""
        if outcome.verdict is Verdict.INTERRUPT:
            return
        job_log.ended(outcome, error)
        if outcome.failure is None:
            self.observation.succeed(self.value)
        elif outcome.verdict is Verdict.RETRY:
            self.observation.retry(outcome.failure, outcome.delay)
        else:
            self.observation.fail(outcome.failure)

    def tell_unless_given_up(self, outcome: Outcome, error: BaseException | None = None) -> None:
        if not self.is_given_up:
            self.tell(outcome, error)

    def give_up(self) -> Outcome:
        """The outcome of an attempt that goes on although its time is over. Called in another thread."""
        try:
            with CleanSurroundings(self.envelope.task):
                try:
                    raise TaskTimedOut(f"{told(self.limit or 0)} and did not end {GRACE:g} s later")
                except TaskTimedOut as error:
                    error.add_note(f"What it does:\n{self.stack()}")
                    outcome = self.judge(error)
                    self.tell(outcome, error)
                    return outcome
        finally:
            close_connections()

    def stack(self) -> str:
        """Where its code is."""
        frame = sys._current_frames().get(self.thread)
        return "".join(traceback.format_stack(frame)) if frame else ""

    def outcome(self, verdict: Verdict, **values: Any) -> Outcome:
        return Outcome(
            self.claim,
            verdict,
            task=self.envelope.task,
            duration_ms=round((time.monotonic() - self.started) * 1000),
            **values,
        )
