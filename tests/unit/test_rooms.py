"""What a worker asks for, by what its queues hold and by the room that there is."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from alkstore_django.contexts import Hold
from alkstore_django.envelopes import Envelope
from alkstore_django.models import Claim
from alkstore_django.runtime import kinds, pools, rooms
from alkstore_django.runtime.execution import Assignment
from alkstore_django.runtime.executors import Executors
from alkstore_django.runtime.kinds import Kind
from alkstore_django.runtime.rooms import LOOKAHEAD, Rooms
from alkstore_django.turns import Wish
from tests.app import coroutines, tasks

THREADS, COROUTINES = 2, 3


class Plan:
    """Queues with no tasks of their own: their kinds are what ``kinds`` says."""

    def __init__(self, *queues: str) -> None:
        self.queues = queues

    def wishes(self, room: int) -> list[Wish]:
        return [Wish(queue, room, 60) for queue in self.queues]


class Setting:
    """Rooms whose queues ``sync``, ``async`` and ``both`` hold what their names say; nothing runs."""

    def __init__(self, *queues: str) -> None:
        self.executors = Executors(THREADS, COROUTINES, interrupted=lambda: None)
        self.rooms = Rooms(Plan(*queues), self.executors, 32)  # type: ignore[arg-type]
        self._number = 0
        for queue, task in (("sync", tasks.add), ("async", tasks.async_add)):
            self.executors.kinds.note(self.claim(queue, task), self.executors.kind(self.claim(queue, task)))
            self.executors.kinds.note(self.claim("both", task), self.executors.kind(self.claim(queue, task)))
        self.executors.loop._notify = lambda n: None  # type: ignore[method-assign]

    def claim(self, queue: str, task: Any) -> Claim:
        self._number += 1
        payload = Envelope(task.module_path, [], {}).seal()
        return Claim(self._number, queue, payload, 0, 0, 1, 3, "w", 0, 0, 0, None)

    def hold(self, task: Any, n: int) -> None:
        """Hand out ``n`` jobs, of which as many as there is room for begin."""
        pool = self.executors.pools[self.executors.kind(self.claim("both", task))]
        claims = [self.claim("both", task) for _ in range(n)]
        pool.hand_out([Assignment(claim, Mock(), (), Hold()) for claim in claims])
        with pool._ready:
            while len(pool._running) < pool.size and pool._begin():
                pass

    def asked(self) -> list[tuple[str, dict[str, int]]]:
        orders = self.rooms.orders()
        return [(each.kind.value, {wish.queue: wish.n for wish in each.wishes}) for each in orders]


def test_each_kind_has_its_room() -> None:
    setting = Setting("sync", "async", "both", "of something else")
    assert setting.asked() == [
        ("sync", {"sync": THREADS, "both": THREADS, "of something else": THREADS}),
        ("async", {"async": COROUTINES}),
    ]


@pytest.mark.parametrize(("task", "expected"), [(tasks.add, THREADS), (tasks.async_add, COROUTINES)])
def test_a_queue_of_both_is_expected_to_go_on_as_it_did(task: Any, expected: int) -> None:
    """After many of one kind, that kind's room counts, although a queue may have both."""
    setting = Setting("both")
    claim = setting.claim("both", task)
    for _ in range(100):
        setting.executors.kinds.note(claim, setting.executors.kind(claim))
    assert setting.asked() == [("sync", {"both": expected})]


def test_they_take_turns() -> None:
    setting = Setting("sync", "async")
    first, second = setting.rooms.orders()
    setting.rooms.claimed(first, 0)
    assert setting.rooms.orders()[0].kind is second.kind
    setting.rooms.claimed(second, 0)
    assert setting.rooms.orders()[0].kind is first.kind


def test_a_full_room_leaves_the_other_open() -> None:
    setting = Setting("sync", "async", "both")
    setting.hold(tasks.add, THREADS)
    assert setting.asked() == [("sync", {"both": LOOKAHEAD}), ("async", {"async": COROUTINES})]
    setting.hold(tasks.async_add, COROUTINES)
    assert setting.asked() == []


@pytest.mark.parametrize(("task", "size"), [(tasks.add, THREADS), (tasks.async_add, COROUTINES)])
def test_who_waits_for_a_full_room_counts(task: Any, size: int) -> None:
    setting = Setting("both")
    setting.hold(task, size + 5)
    assert setting.asked() == [("sync", {"both": LOOKAHEAD - 5})]
    setting.hold(task, LOOKAHEAD)
    assert setting.asked() == []


def test_after_a_give_back_the_queue_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer each time, until there is room again."""
    now = [1000.0]
    for module in (rooms, pools):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    setting = Setting("both")
    setting.hold(tasks.async_add, COROUTINES + 1)
    for patience in (1, 2, 4, 8, 16, 30, 30):
        setting.executors.take_back(kinds=[Kind.ASYNC])
        setting.rooms.unloaded(Kind.ASYNC)
        now[0] += patience - 0.1
        assert setting.asked() == []
        now[0] += 0.1
        assert setting.asked() == [("sync", {"both": LOOKAHEAD})]
    assert setting.executors.loop.stalls_in() == float("inf")


def test_more_than_there_is_room_for_is_not_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while one after the other of them begins: another worker may be idle."""
    now = [1000.0]
    for module in (rooms, pools):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    setting = Setting("both")
    setting.hold(tasks.add, THREADS + 5)
    for _ in range(4):
        assert setting.rooms.stalled() == []
        assert 0 < setting.rooms.stalls_in() <= pools.STALL
        now[0] += 0.3
        running = setting.executors.threads.running()
        setting.executors.threads.forget(running[0])
        with setting.executors.threads._ready:
            assert setting.executors.threads._begin()
    assert setting.rooms.stalled() == [Kind.SYNC]
    assert setting.rooms.stalls_in() == 0
    setting.executors.take_back(kinds=[Kind.SYNC])
    setting.rooms.unloaded(Kind.SYNC)
    assert setting.rooms.stalled() == []
    assert setting.rooms.stalls_in() == float("inf")


def test_max_tasks_holds_for_both() -> None:
    setting = Setting("sync", "async")
    assert [order.room for order in setting.rooms.orders(1)] == [1, 1]
    assert setting.rooms.orders(0) == []


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize(
    ("task", "kind"), [(tasks.add, Kind.SYNC), (tasks.async_add, Kind.ASYNC), (coroutines.hold, Kind.ASYNC)]
)
def test_the_kind_of_a_claim(task: Any, kind: Kind, as_bytes: bool) -> None:
    payload: Any = Envelope(task.module_path, ["}"], {}).seal()
    claim = Claim(1, "q", payload.encode() if as_bytes else payload, 0, 0, 1, 3, "w", 0, 0, 0, None)
    assert kinds.Kinds().of_claim(claim) is kind


@pytest.mark.parametrize(
    "payload",
    ["", "nonsense", b"\xff\xfe", "{}", '{"__honker_task__": 1}', '{"__honker_task__": {"task": "x"'],
)
def test_the_kind_of_what_is_no_task(payload: Any) -> None:
    claim = Claim(1, "q", payload, 0, 0, 1, 3, "w", 0, 0, 0, None)
    assert kinds.Kinds().of_claim(claim) is Kind.SYNC
    assert kinds.Kinds().of_claim_once_imported(claim) is Kind.SYNC


def test_an_outbox_that_takes_many_is_asked_for_as_many() -> None:
    """While there is room at all; those that run together are one."""
    setting = Setting("sync", "both")
    kinds, pool = setting.executors.kinds, setting.executors.threads
    setting.rooms.orders()
    kinds.batches = {"sync": 50}
    assert setting.asked() == [("sync", {"sync": 50, "both": THREADS})]
    claims = [setting.claim("sync", tasks.add) for _ in range(50)]
    setting.executors.hand_out([Assignment(claim, Mock(), (), Hold()) for claim in claims])
    first = pool._next()
    assert first is not None and [each.claim for each in (first, *first.companions)] == claims
    assert (pool.held(), len(pool.running())) == (1, 50)
    assert setting.asked() == [("sync", {"sync": 50, "both": THREADS - 1})]
    pool.forget(first)
    assert (pool.held(), pool.running()) == (0, [])


@pytest.mark.parametrize(("attempts", "most"), [(2, 3), (1, 1)])
def test_what_may_not_fail_again_runs_alone(attempts: int, most: int) -> None:
    """The second attempt of an event, and its only one."""
    setting = Setting("sync")
    setting.executors.kinds.batches = {"sync": 50}
    claims = [setting.claim("sync", tasks.add) for _ in range(2)]
    claims[1] = claims[1]._replace(attempts=attempts, max_attempts=most)
    setting.executors.hand_out([Assignment(claim, Mock(), (), Hold()) for claim in claims])
    first, second = setting.executors.threads._next(), setting.executors.threads._next()
    assert first is not None and not first.companions
    assert second is not None and second.claim == claims[1]
