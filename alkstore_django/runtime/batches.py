"""Several events of an outbox that one call delivers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from alkstore_django import origins
from alkstore_django.exceptions import TaskInterrupted, TaskTimedOut
from alkstore_django.failures import from_exception
from alkstore_django.tasks import option
from alkstore_django.turns import Outcome, Verdict

from . import judging
from .attempts import ended_badly, prepared
from .execution import Assignment, Execution
from .forks import OneProcess
from .hygiene import CleanSurroundings
from .timeouts import call_within
from .watch import Watch


def execute_batch(assignments: Sequence[Assignment], watch: Watch) -> list[Outcome]:
    """An outcome for each. Every exception but ``KeyboardInterrupt`` becomes outcomes."""
    found = [prepared(each.claim, partial(Execution, each, watch)) for each in assignments]
    outcomes = [each for each in found if isinstance(each, Outcome)]
    executions = [each for each in found if isinstance(each, Execution)]
    if not executions:
        return outcomes
    done: list[Outcome] = []
    try:
        with CleanSurroundings(executions[0].envelope.task):
            done = Batch(executions).run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        pairs = zip_longest(executions, done)
        done = [ended_badly(each.claim, each.envelope.task, error, outcome) for each, outcome in pairs]
    return outcomes + done


class Batch:
    """The first execution stands for all while the function runs: its time is that of all."""

    def __init__(self, executions: list[Execution]) -> None:
        self._executions = executions
        self._lead = executions[0]
        self._lead.companions = executions[1:]

    def run(self) -> list[Outcome]:
        for each in self._executions:
            each.find()
            each.limit = option(each.task, "timeout")
        try:
            for each in self._executions:
                each.begin()
            value = self._call()
            outcomes = [each.accept(value) for each in self._executions]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, TaskTimedOut):
                self._lead.let_go_of_connections()
            outcomes = [self._judge(each, error) for each in self._executions]
            for each, outcome in zip(self._executions, outcomes, strict=True):
                each.tell_unless_given_up(outcome, error)
        else:
            for each, outcome in zip(self._executions, outcomes, strict=True):
                each.tell_unless_given_up(outcome)
        return outcomes

    def _call(self) -> Any:
        lead = self._lead
        events = [event for each in self._executions for event in each.arguments()[0]]

        def body() -> Any:
            with OneProcess(lead.claim), origins.restored(lead.envelope.extra):
                return lead.task.call(events)

        return call_within(lead.watch, lead, lead.limit, body)

    def _judge(self, execution: Execution, error: BaseException) -> Outcome:
        """Each is tried again by itself, whatever was raised: nobody knows whose fault it was."""
        execution.has_bad_value = self._lead.has_bad_value
        interrupted = isinstance(error, TaskInterrupted) and execution.assignment.hold.is_cancelled
        if len(self._executions) == 1 or execution.has_bad_value or interrupted:
            return execution.judge(error)
        verdict, delay = judging.verdict(error, execution.claim, execution.task)
        if verdict is not Verdict.RETRY:
            delay = option(execution.task, "backoff").delay(execution.claim.attempts)
        return execution.outcome(Verdict.RETRY, delay=delay, failure=from_exception(error))
