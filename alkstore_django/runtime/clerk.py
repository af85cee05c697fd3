"""The clerk: the one who touches the queue tables.

Each of its turns is one short transaction that settles everything that has finished and claims for
the room there is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from alkstore_django import turns, wakes
from alkstore_django.contexts import Hold
from alkstore_django.turns import Renewal

from . import job_log
from .cleaning import Cleaning
from .execution import Assignment
from .executors import Executors
from .hand import Hand
from .kinds import Kind
from .lapsed import LapsedJobs
from .lookout import Lookout
from .losses import Losses
from .maintenance import Maintenance
from .options import Options, new_worker_id
from .pausing import Pauses
from .plan import Plan
from .reconciliation import reconcile
from .records import Records
from .registration import Registration
from .relays import Relays
from .rooms import NOTHING, Order, Rooms


class Clerk:
    """Decides what a turn does: from what is in hand, and how much more there is room for."""

    def __init__(self, options: Options, executors: Executors) -> None:
        self.options = options
        self.executors = executors
        self.using = options.using
        self.worker_id = options.worker_id or new_worker_id()
        self.plan = Plan(options.using, options.queues, options.visibility_timeout, options.excluded)
        self.pauses = Pauses(options.using, self.plan)
        self.registration = Registration(options, self.worker_id, self.plan)
        self.hand = Hand(options.using, self.worker_id, self.plan, executors)
        self.losses = Losses(self.using, self.worker_id, self.hand.leases)
        self.lookout = Lookout(options.using, self.plan)
        self.lapsed = LapsedJobs(self.using, self.worker_id, self.plan, self.lookout)
        self.maintenance = Maintenance(options.using, self.plan)
        self.cleaning = Cleaning(options.using, self.worker_id) if options.maintenance else None
        self.rooms = Rooms(self.plan, executors, options.prefetch)
        self.records = Records(options.using, executors.kinds)
        self.relays = Relays(options.using)
        self.closed = False
        """Whether to claim nothing any more: the worker stops."""
        self.drained = False
        self._alone: Any = None

    def turn(self) -> None:
        """Raises what the database raises; then nothing of it was done, and it can be tried again."""
        with self.lapsed.judged_later(), self.hand.atomics.between() as is_free:
            if is_free:
                self._turn()
                self.registration.beat(len(self.executors.running()))
        self.executors.hand_out(self.hand.atomics.next())

    def _turn(self) -> None:
        self.plan.look()
        if self.pauses.look():
            self.hand.put_back(self.hand.take_back())
        lost = self.losses.look(self.hand.outcomes)
        self.hand.lose(lost)
        self.relays.lose(lost)
        self._notice_its_end()
        self._unload()
        self.lookout.forget()
        orders = self.orders()
        order, renewals = self._order(orders), self.hand.renewals()
        if worked := bool(self.hand.outcomes or renewals or order.room):
            self._settle_and_claim(renewals, order)
        if self.relays.move_on():
            self.rooms.promising |= set(Kind)
        self.hand.heartbeats.answer(self.hand.leases)
        is_idle = not (worked or self.hand.is_busy or self.relays.are_busy)
        if self.options.batch and is_idle and self._is_drained():
            self.drained = True
            self.pauses.tell_what_is_left()
        if orders:
            self.maintenance.run_due()
        if self.cleaning and not self.closed:
            self.cleaning.run_due()

    def reconcile(self) -> None:
        """After an outage, before the next turn."""
        reconcile(self.using, self.worker_id, self.plan, self.hand.leases, self.hand.outcomes)

    def _settle_and_claim(self, renewals: Sequence[Renewal], order: Order) -> None:
        outcomes, asked = list(self.hand.outcomes), time.monotonic()
        self.hand.atomics.settle(outcomes)
        unwritten = [outcome for outcome in outcomes if not outcome.is_written]
        turn = turns.take(self.using, self.worker_id, unwritten, order.wishes, order.room, renewals)
        self.rooms.claimed(order, len(turn.claims))
        self.rooms.learn(outcomes)
        for renewal in renewals:
            self.hand.leases.renewed(renewal.claim, renewal.extend)
        for outcome in self.hand.settled(outcomes, turn.lost):
            job_log.ended(outcome)
        self.relays.settled(outcomes, turn.lost)
        self._notice_its_end()
        if order.room:
            self.lookout.claimed(order.wishes, len(turn.claims))
        self._hand_out(turn.claims, asked)
        if any(outcome.is_put_back for outcome in outcomes):
            wakes.announce(self.using)

    def _order(self, orders: list[Order]) -> Order:
        """What to claim in this turn. An idle worker reads before it writes: it takes no lock."""
        for order in self._orders_now(orders):
            if order.kind in self.rooms.promising or self.lookout.sees_claimable(order.wishes):
                return order
        return NOTHING

    def _hand_out(self, claims: Sequence[Any], asked: float) -> None:
        """``asked``: by the monotonic clock, not after the claims began."""
        if not claims:
            return
        # All reads come first: what is in hand has been handed out, also if one of them fails.
        history, told = turns.history(self.using, claims), self.records.of(claims)
        keys = self.relays.keys_of(claims)
        visibility = {wish.queue: wish.visibility for wish in self.plan.wishes(1)}
        for claim in claims:
            self.hand.leases.add(claim, visibility[claim.queue], since=asked)
        self.hand.started += len(claims)
        waited = time.monotonic() - asked
        late = [claim for claim in claims if waited >= visibility[claim.queue]]
        self.hand.put_back(late)  # unless others have them by now
        fresh = [claim for claim in claims if claim not in late]
        hand = self.hand
        assignments = [
            Assignment(
                claim,
                hand.atomics,
                history.get(claim.id, ()),
                Hold(hand.heartbeats.ask),
                told.get(claim.id, ()),
                keys.get(claim.id),
            )
            for claim in fresh
        ]
        self.executors.hand_out(hand.atomics.line_up(assignments))

    def orders(self) -> list[Order]:
        """What there is room for."""
        if self.closed or self._alone is not None or self.hand.atomics.are_many:
            return []
        return self.rooms.orders((self.options.max_tasks or math.inf) - self.hand.started)

    def _orders_now(self, orders: list[Order]) -> list[Order]:
        """Nothing is claimed beside a job whose worker vanished (``LapsedJobs``)."""
        if not orders or not self.lapsed.are_there():
            return orders
        is_busy = self.hand.is_busy
        if is_busy and not self.lapsed.need_not_wait:
            self.rooms.promising.clear()
            return [] if self.lapsed.may_wait() else orders
        asked = time.monotonic()
        claim = self.lapsed.claim_one(beside_others=is_busy)
        if claim is None:
            return orders
        self._hand_out([claim], asked)
        self._alone = claim
        return []

    def _notice_its_end(self) -> None:
        """Of the job that was claimed alone, whatever became of it."""
        if self._alone is not None and not self.hand.holds(self._alone):
            self._alone = None
            self.lapsed.rest()

    def _unload(self) -> None:
        """Put back what waits behind long tasks: another worker may be idle."""
        for kind in self.rooms.stalled():
            self.rooms.unloaded(kind)
            self.hand.put_back(self.executors.take_back(kinds=[kind]))

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> int:
        """Claim nothing any more and put back what has not started; how many tasks still run."""
        self.closed = True
        self.hand.put_back(self.hand.take_back())
        return len(self.hand.running())

    def has_run_enough(self) -> bool:
        return self.hand.started >= (self.options.max_tasks or math.inf)

    def _is_drained(self) -> bool:
        """Nothing of the queues runs, is due, or waits for a retry, also after the last sweep."""
        self.plan.look(now=True)
        if not turns.is_settled(self.using, self.plan.wishes(1)):
            return False
        self.maintenance.run_all()
        return turns.is_settled(self.using, self.plan.wishes(1))

    # -- deadlines --------------------------------------------------------------------------------

    def next_deadline(self) -> float:
        """Seconds until something of what it has in hand wants a turn."""
        in_hand = (self.hand.leases.next_due(), self.hand.atomics.next_due(), self.losses.due_in())
        dues = (self.rooms.stalls_in(), self.plan.next_look(), self.pauses.next_look(), self.relays.due_in())
        cleaning = self.cleaning.due_in() if self.cleaning and not self.closed else math.inf
        return min(*in_hand, *dues, self.registration.due_in(), cleaning)

    def listens(self) -> bool:
        """Whether it would claim, if it heard of something."""
        return bool(self.orders()) and not self.lapsed.is_waiting

    def idle_deadline(self) -> float:
        """Seconds until there is something to claim for the room there is, as far as the tables tell."""
        if self.lapsed.is_waiting:
            return self.lapsed.next_look()
        wishes = [wish for order in self.orders() for wish in order.wishes]
        lapsed = max(self.lookout.lapses_in(), self.lapsed.next_look())
        return min(self.lookout.due_in(wishes), self.rooms.opens_in(), lapsed)

    def wants_more(self) -> bool:
        """Whether there is room, and reason to believe that there is something to claim."""
        orders, maybe_lapsed = self.orders(), self.lapsed.may_be_more and not self.hand.is_busy
        return any(maybe_lapsed or order.kind in self.rooms.promising for order in orders)
