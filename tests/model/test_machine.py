"""The queue and a model of it, side by side: every table is compared after every step.

``ALKSTORE_MODEL_SECONDS=600`` looks for longer, with a seed that it prints.
"""

from __future__ import annotations

import faulthandler
import os
import random
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from alkstore_django import queues, reviving, turns
from alkstore_django.claims import ClaimedJob
from alkstore_django.failures import of
from alkstore_django.models import Attempt, Claim, DeadJob, Job, Run
from alkstore_django.queues import Queue
from alkstore_django.turns import Outcome, Renewal, Verdict, Wish

from . import foreign
from .clock import START, Clock, own_clock
from .queue_model import BROKEN, Dead, QueueModel, Row

QUEUES = ("a", "b")
WORKERS = ("w1", "w2", "w3")
VISIBILITY = 10

queue_names = st.sampled_from(QUEUES)
workers = st.sampled_from(WORKERS)
priorities = st.integers(-2, 2)
few = st.integers(0, 4)
pick = st.integers(0, 10_000)


def hand(claim: Claim) -> ClaimedJob:
    """What a worker holds; it has not looked at the payload."""
    known = {name: getattr(claim, name) for name in ("id", "queue", "priority", "run_at", "attempts")}
    return ClaimedJob(
        payload=None,
        max_attempts=claim.max_attempts,
        worker_id=claim.worker_id,
        claim_expires_at=claim.claim_expires_at,
        claim=claim,
        **known,
    )


class QueueMachine(RuleBasedStateMachine):
    """Workers of ours, one of honker's, operators, and the clock."""

    clock: Clock

    @initialize()
    def begin(self) -> None:
        for model in (Job, DeadJob, Run, Attempt):
            model._default_manager.all()._raw_delete("default")
        self.clock.step_to(START)
        self.model = QueueModel()
        self.model.now = START
        self.queues = {name: Queue(name, visibility_timeout=VISIBILITY) for name in QUEUES}
        self.hands: list[ClaimedJob] = []

    # -- jobs come ----------------------------------------------------------------------------------

    @rule(
        name=queue_names,
        priority=priorities,
        delay=st.integers(0, 15),
        expires=st.none() | st.integers(0, 25),
        max_attempts=st.integers(1, 3),
        count=st.integers(1, 3),
    )
    def enqueue(
        self, name: str, priority: int, delay: int, expires: int | None, max_attempts: int, count: int
    ) -> None:
        options: dict[str, Any] = {"priority": priority, "delay": delay, "expires": expires}
        options["max_attempts"] = max_attempts
        payloads = [{"n": number} for number in range(count)]
        queue = self.queues[name]
        ids = (
            [queue.enqueue(payloads[0], **options)] if count == 1 else queue.enqueue_many(payloads, **options)
        )
        assert len(ids) == count and ids == sorted(ids)
        for number, job_id in enumerate(ids):
            assert job_id > max(self.model.known(), default=0)
            self.model.live[job_id] = Row(
                id=job_id,
                queue=name,
                payload=f'{{"n":{number}}}',
                priority=priority,
                run_at=self.clock.now + delay,
                max_attempts=max_attempts,
                expires_at=None if expires is None else self.clock.now + expires,
            )

    @rule(name=queue_names, priority=priorities, max_attempts=st.integers(-1, 1), is_broken=st.booleans())
    def another_program_enqueues(self, name: str, priority: int, max_attempts: int, is_broken: bool) -> None:
        payload = BROKEN if is_broken else "1"
        now = self.clock.now
        columns: dict[str, Any] = {
            "queue": name,
            "payload": payload,
            "priority": priority,
            "max_attempts": max_attempts,
        }
        made = Job.objects.create(run_at=now, **columns)
        self.model.live[made.pk] = Row(id=made.pk, run_at=now, expires_at=None, **columns)

    # -- jobs are claimed ---------------------------------------------------------------------------

    @rule(name=queue_names, worker=workers, n=few)
    def claim(self, name: str, worker: str, n: int) -> None:
        jobs = self.queues[name].claim_batch(worker, n)
        expected = self._model_claims(name, worker, n)
        assert [(job.id, job.attempts) for job in jobs] == expected
        assert all(job.claim_expires_at == self.clock.now + VISIBILITY for job in jobs)
        self.hands += jobs

    def _model_claims(self, name: str, worker: str, n: int) -> list[tuple[int, int]]:
        claimed: list[tuple[int, int]] = []
        while n > len(claimed):
            self._model_reopens(name)
            free = self._model_takes(name, worker, n - len(claimed))
            for row in free:
                if row.payload != BROKEN:
                    claimed.append((row.id, row.attempts + 1))
                else:
                    self._model_buries(row.id, "failed")
            if not any(row.payload == BROKEN for row in free):
                break
        return claimed

    def _model_takes(self, name: str, worker: str, n: int) -> list[Row]:
        """Claim up to ``n``; the rows as they were before."""
        model = self.model
        rows = [row for row in model.live.values() if row.queue == name and model.claimable(row)]
        taken = sorted(rows, key=lambda row: row.rank)[:n]
        for row in taken:
            until = model.now + VISIBILITY
            model.change(
                row.id, state="processing", worker=worker, attempts=row.attempts + 1, claim_until=until
            )
        return taken

    def _model_reopens(self, name: str) -> None:
        for row in self._lapsed(name):
            if self._model_judges(row):
                self.model.put_back(row.id)

    def _lapsed(self, name: str) -> list[Row]:
        rows = sorted(self.model.live.values(), key=lambda row: row.id)
        return [row for row in rows if row.queue == name and self.model.lapsed(row)]

    def _is_hopeless(self, row: Row) -> bool:
        return self.model.expired(row) or row.attempts >= row.max_attempts

    def _model_judges(self, row: Row) -> bool:
        """Whether a job whose worker vanished goes on."""
        if self.model.expired(row) or not self._is_hopeless(row):
            self.model.note(row.id, "lost", row.attempts)
        if self._is_hopeless(row):
            self._model_buries(row.id, "expired" if self.model.expired(row) else "lost")
            return False
        return True

    # -- what a worker does ---------------------------------------------------------------------------

    @rule(
        worker=workers,
        name=queue_names,
        n=few,
        ends=st.lists(st.tuples(pick, st.sampled_from(Verdict), st.integers(0, 12)), max_size=3),
        kept=st.lists(st.tuples(pick, st.integers(1, 30)), max_size=2),
    )
    def turn(
        self,
        worker: str,
        name: str,
        n: int,
        ends: list[tuple[int, Verdict, int]],
        kept: list[tuple[int, int]],
    ) -> None:
        """Settle, renew and claim at once; a worker may believe in claims that it has lost."""
        mine = {job.id: job for job in self.hands if job.worker_id == worker}
        outcomes, renewals = [], []
        for index, verdict, delay in ends:
            if mine:
                job = mine.pop(sorted(mine)[index % len(mine)])
                outcomes.append(
                    Outcome(job.claim, verdict, "task", delay=delay, failure=of(Exception, "why"))
                )
        for index, extend in kept:
            if mine:
                renewals.append(Renewal(mine.pop(sorted(mine)[index % len(mine)]).claim, extend))
        told = turns.take("default", worker, outcomes, [Wish(name, n, VISIBILITY, False)], n, renewals)
        lost = [each.claim for each in [*outcomes, *renewals] if not self._is_claimed(each.claim)]
        assert sorted(told.lost) == sorted(lost)
        for outcome in outcomes:
            if self._is_claimed(outcome.claim):
                self._model_settles(outcome)
        for renewal in renewals:
            if self._is_claimed(renewal.claim):
                self.model.change(renewal.claim.id, claim_until=self.clock.now + renewal.extend)
        taken = self._model_takes(name, worker, n)
        assert [claim.key for claim in told.claims] == [(row.id, row.attempts + 1) for row in taken]
        self.hands += map(hand, told.claims)

    def _is_claimed(self, claim: Claim) -> bool:
        return self.model.held(claim.id, claim.worker_id, claim.attempts)

    def _model_settles(self, outcome: Outcome) -> None:
        model, claim = self.model, outcome.claim
        match outcome.verdict:
            case Verdict.ACK:
                model.finish(claim.id, "succeeded")
            case Verdict.DISCARD:
                model.note(claim.id, "failed", claim.attempts)
                model.finish(claim.id, "failed")
            case Verdict.RETRY:
                model.note(claim.id, "failed", claim.attempts)
                model.put_back(claim.id, run_at=self.clock.now + outcome.delay)
            case Verdict.INTERRUPT:
                model.interrupt(claim.id)
            case Verdict.GIVE_BACK:
                model.put_back(claim.id, attempts=claim.attempts - 1)
            case Verdict.DEAD:
                self._model_buries(claim.id, "failed")

    @rule(worker=workers, name=queue_names)
    def reclaim_one(self, worker: str, name: str) -> None:
        claim = turns.reclaim_one("default", worker, Wish(name, 1_000, VISIBILITY, False))
        lapsed = self._lapsed(name)
        again = [row for row in lapsed if not self._is_hopeless(row)]
        assert (claim is None) == (not again)
        if claim is not None:
            row = self.model.live[claim.id]
            assert row.claim_until == min(each.claim_until or 0 for each in again)
            lapsed = [each for each in lapsed if each not in again or each is row]
            self.hands.append(hand(claim))
        else:
            lapsed = [each for each in lapsed if each not in again]
        for each in lapsed:
            if self._model_judges(each):
                until = self.clock.now + VISIBILITY
                self.model.change(each.id, worker=worker, attempts=each.attempts + 1, claim_until=until)

    @rule(name=queue_names)
    def bury_hopeless(self, name: str) -> None:
        hopeless = [row for row in self._lapsed(name) if self._is_hopeless(row)]
        assert turns.bury_hopeless("default", Wish(name, 1_000, VISIBILITY, False)) == len(hopeless)
        for row in hopeless:
            self._model_judges(row)

    # -- another program ------------------------------------------------------------------------------

    @rule(name=queue_names, n=few)
    def another_program_claims(self, name: str, n: int) -> None:
        taken = foreign.claim(name, "honker", n, self.clock.now, VISIBILITY)
        for row in list(self.model.live.values()):
            if row.id in taken:
                until = self.clock.now + VISIBILITY
                self.model.change(
                    row.id, state="processing", worker="honker", attempts=row.attempts + 1, claim_until=until
                )
            elif not Job.objects.filter(pk=row.id).exists():
                self.model.bury(row.id, "none")
                self.model.history.pop()

    @rule(index=pick, verdict=st.sampled_from(["ack", "retry", "fail"]))
    def another_program_settles(self, index: int, verdict: str) -> None:
        held = [
            row for row in self.model.live.values() if row.worker == "honker" and not self.model.lapsed(row)
        ]
        if not held:
            return
        row = held[index % len(held)]
        if verdict == "ack":
            Job.objects.filter(pk=row.id).delete()
            del self.model.live[row.id]
        elif verdict == "retry":
            columns: dict[str, Any] = {"state": "pending", "run_at": self.clock.now + 3}
            Job.objects.filter(pk=row.id).update(worker_id=None, claim_expires_at=None, **columns)
            self.model.put_back(row.id, run_at=self.clock.now + 3)
        elif row.id not in self.model.dead:
            foreign.bury(Job.objects.get(pk=row.id), "no")
            self.model.bury(row.id, "none")
            self.model.history.pop()

    # -- what becomes of them -----------------------------------------------------------------------

    def _hand(self, index: int) -> tuple[ClaimedJob, bool] | None:
        """A claim that was given at some time, and whether the model says that it is still held."""
        if not self.hands:
            return None
        job = self.hands[index % len(self.hands)]
        return job, self.model.held(job.id, job.worker_id, job.attempts)

    @rule(index=pick)
    def ack(self, index: int) -> None:
        if hand := self._hand(index):
            job, held = hand
            assert self.queues[job.queue].ack(job) is held
            if held:
                del self.model.live[job.id]

    @rule(name=queue_names)
    def ack_everything(self, name: str) -> None:
        held = {job.id for job in self.hands if job.queue == name and self._is_held(job)}
        assert self.queues[name].ack_batch(self.hands + self.hands) == len(held)
        for job_id in held:
            del self.model.live[job_id]

    def _is_held(self, job: ClaimedJob) -> bool:
        return self.model.held(job.id, job.worker_id, job.attempts)

    @rule(index=pick, delay=st.integers(0, 12))
    def retry(self, index: int, delay: int) -> None:
        if hand := self._hand(index):
            job, held = hand
            assert self.queues[job.queue].retry(job, delay, "why") is held
            if held and job.attempts >= job.max_attempts:
                self._model_buries(job.id, "failed")
            elif held:
                self.model.note(job.id, "failed", job.attempts)
                self.model.put_back(job.id, run_at=self.clock.now + delay)

    @rule(index=pick)
    def fail(self, index: int) -> None:
        if hand := self._hand(index):
            job, held = hand
            assert self.queues[job.queue].fail(job, "why") is held
            if held:
                self._model_buries(job.id, "failed")

    @rule(index=pick, extend=st.none() | st.integers(1, 30))
    def heartbeat(self, index: int, extend: int | None) -> None:
        if hand := self._hand(index):
            job, held = hand
            assert self.queues[job.queue].heartbeat(job, extend) is held
            if held:
                self.model.change(job.id, claim_until=self.clock.now + (extend or VISIBILITY))

    @rule(index=pick, started=st.booleans())
    def release(self, index: int, started: bool) -> None:
        if hand := self._hand(index):
            job, held = hand
            assert self.queues[job.queue].release(job, started=started) is held
            if held and started:
                self.model.interrupt(job.id)
            elif held:
                self.model.put_back(job.id, attempts=job.attempts - 1)

    # -- operators ----------------------------------------------------------------------------------

    @rule(index=pick, scoped=st.sampled_from([None, *QUEUES]))
    def cancel(self, index: int, scoped: str | None) -> None:
        ids = sorted(self.model.known())
        if not ids:
            return
        job_id = ids[index % len(ids)]
        row = self.model.live.get(job_id)
        expected = row is not None and scoped in (None, row.queue)
        done = queues.cancel(job_id) if scoped is None else self.queues[scoped].cancel(job_id)
        assert done is expected
        if row is not None and expected:
            self.model.finish(job_id, "cancelled")

    @rule(name=queue_names)
    def sweep(self, name: str) -> None:
        model, swept = self.model, 0
        for row in sorted(model.live.values(), key=lambda row: row.id):
            if row.queue == name and model.expired(row) and (row.state == "pending" or model.lapsed(row)):
                swept += 1
        moved = self.queues[name].sweep_expired()
        assert moved == swept
        for row in sorted(model.live.values(), key=lambda row: row.id):
            if row.queue == name and model.expired(row) and (row.state == "pending" or model.lapsed(row)):
                if row.state == "processing":
                    model.note(row.id, "lost", row.attempts)
                self._model_buries(row.id, "expired")

    @rule(name=queue_names)
    def sweep_exhausted(self, name: str) -> None:
        rows = sorted(self.model.live.values(), key=lambda row: row.id)
        spent = [
            row
            for row in rows
            if row.queue == name and row.state == "pending" and row.run_at <= self.clock.now
            if row.attempts >= row.max_attempts
        ]
        assert self.queues[name].sweep_exhausted() == len(spent)
        for row in spent:
            self._model_buries(row.id, "expired")

    @rule(index=pick)
    def requeue(self, index: int) -> None:
        if not self.model.dead:
            return
        job_id = sorted(self.model.dead)[index % len(self.model.dead)]
        known = self.model.known()
        revived = reviving.requeue("default", [job_id, 2**63, 2**62])
        new_id = revived.pop(job_id)
        assert not revived
        letter = self.model.dead.pop(job_id)
        if job_id in self.model.live:
            assert new_id > max(known)
            self.model.note(job_id, "renumbered", None)
            self.model.note(new_id, "renumbered", None)
        else:
            assert new_id == job_id
        self.model.note(new_id, "requeued", None)
        self.model.live[new_id] = Row(
            id=new_id,
            queue=letter.queue,
            payload=letter.payload,
            priority=letter.priority,
            run_at=self.clock.now,
            max_attempts=max(1, letter.max_attempts),
            expires_at=None,
        )

    @rule(index=pick)
    def another_program_takes_the_id(self, index: int) -> None:
        """A dead letter under the id of a live job, or the other way round."""
        if self.model.live and index % 2:
            row = self.model.live[sorted(self.model.live)[index % len(self.model.live)]]
            if row.id not in self.model.dead:
                letter = {"queue": "a", "payload": "2", "max_attempts": 3}
                DeadJob.objects.create(id=row.id, priority=0, run_at=0, attempts=3, **letter)
                self.model.dead[row.id] = Dead("a", "2", priority=0, run_at=0, attempts=3, max_attempts=3)
        elif self.model.dead:
            job_id = sorted(self.model.dead)[index % len(self.model.dead)]
            if job_id not in self.model.live:
                columns: dict[str, Any] = {"queue": "b", "payload": "3", "run_at": self.clock.now}
                Job.objects.create(id=job_id, **columns)
                self.model.live[job_id] = Row(
                    id=job_id, priority=0, max_attempts=3, expires_at=None, **columns
                )

    @rule(seconds=st.integers(1, 12) | st.integers(9, 11) | st.integers(-8, -1))
    def time_passes(self, seconds: int) -> None:
        """Or the clock of the server is set back."""
        self.clock.step(seconds)
        self.model.now = self.clock.now

    # -- the comparison -----------------------------------------------------------------------------

    def _model_buries(self, job_id: int, kind: str) -> None:
        known = self.model.known()
        displaced = self.model.bury(job_id, kind)
        if displaced is not None:
            told = Attempt.objects.filter(job_id=job_id, kind=Attempt.RENUMBERED).latest("id")
            assert told.other_id > max(known)
            self.model.dead[told.other_id] = displaced
            self.model.note(told.other_id, "renumbered", None)
            self.model.note(told.other_id, kind, displaced.attempts)

    @invariant()
    def tables_equal_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        model = self.model
        live = Job.objects.values_list(
            "id", "queue", "payload", "priority", "run_at", "max_attempts", "expires_at", "attempts", "state",
            "worker_id", "claim_expires_at",
        )  # fmt: skip
        assert {row[0]: Row(*row) for row in live} == model.live
        dead = DeadJob.objects.values_list(
            "id", "queue", "payload", "priority", "run_at", "attempts", "max_attempts"
        )
        assert {row[0]: row[1:] for row in dead} == model.dead
        runs = Run.objects.values_list("job_id", "status", "attempts")
        assert {job_id: (status, n) for job_id, status, n in runs} == model.runs
        history = Attempt.objects.values_list("job_id", "kind", "attempt", "life")
        assert sorted(history, key=str) == sorted(model.history, key=str)
        for name, queue in self.queues.items():
            assert queue.next_claim_at() == model.next_claim_at(name)


@pytest.mark.django_db(transaction=True)
def test_the_queue_is_its_model() -> None:
    options = {"deadline": None, "suppress_health_check": list(HealthCheck), "stateful_step_count": 40}
    with own_clock() as clock:
        QueueMachine.clock = clock
        run_state_machine_as_test(QueueMachine, settings=settings(max_examples=25, **options))
        limit = float(os.environ.get("ALKSTORE_MODEL_SECONDS", "0"))
        if limit:
            faulthandler.cancel_dump_traceback_later()  # pytest's, after which the run would end
        began = time.monotonic()
        while time.monotonic() - began < limit:
            number = random.randrange(2**32)
            print(f"seed {number}", flush=True)
            machine = seed(number)(type("Seeded", (QueueMachine,), {}))
            run_state_machine_as_test(machine, settings=settings(max_examples=20, **options))
