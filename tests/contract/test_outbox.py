"""``outbox``: events in the caller's transaction, and the lines in which those of a key stand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from alkstore_django import event_lines, queues, registry
from alkstore_django.contexts import Hold
from alkstore_django.exceptions import UnknownOutbox
from alkstore_django.models import DeadJob, Job, OutboxEvent, OutboxKey
from alkstore_django.outbox import Event, Outbox, declared, get, outbox
from alkstore_django.sql.relaying import PARKED
from alkstore_django.testing import drain
from tests import factories
from tests.contract.test_races import together, waits_for_a_lock
from tests.factories import at
from tests.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

delivered: list[tuple[str | None, Any]] = []
broken: list[Any] = []
numbers = iter(range(1, 10_000))


def declare(**options: Any) -> Outbox:
    """An outbox that no other test knows."""

    def deliver(event: Event) -> None:
        if event.payload in broken:
            raise ValueError(f"broken: {event.payload}")
        delivered.append((event.key, event.payload))

    deliver.__qualname__ = name = f"deliver {next(numbers)}"
    return outbox(name, **{"max_attempts": 1, "base_backoff": 0, **options})(deliver)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    delivered.clear()
    broken.clear()


def run_at(box: Outbox) -> list[int]:
    """0 for each event that can be claimed, in the order of their jobs, 1 for each that is parked."""
    rows = Job.objects.filter(queue=box.queue_name).order_by("pk").values_list("run_at", flat=True)
    return [int(moment == PARKED) for moment in rows]


def deliver_all(box: Outbox) -> list[tuple[str | None, Any]]:
    drain(queue=box.queue_name)
    return delivered


# -- without keys ---------------------------------------------------------------------------------------


def test_an_event_is_a_job_as_honker_has_it() -> None:
    box = declare(max_attempts=5)
    event_id = box.enqueue({"order": [1, None]})
    job = Job.objects.get()
    assert (job.queue, job.payload) == (f"_outbox:{box.name}", '{"order":[1,null]}')
    assert (job.max_attempts, job.priority, job.expires_at, job.run_at) == (5, 0, None, job.created_at)
    assert event_id == f"{box.name}-{job.pk}-{job.created_at}"


def test_it_pays_nothing_for_keys() -> None:
    box = declare()
    with CaptureQueriesContext(connection) as captured:
        box.enqueue(1)
        box.enqueue_many([2, 3])
    touching = [query["sql"] for query in captured if "alkstore_outbox" in query["sql"]]
    assert touching == []
    assert deliver_all(box) == [(None, 1), (None, 2), (None, 3)]


def test_a_rollback_takes_it_along() -> None:
    box = declare()
    with transaction.atomic():
        box.enqueue(1)
        box.enqueue(2, key="k")
        transaction.set_rollback(True)
    assert not Job.objects.exists() and not OutboxEvent.objects.exists() and not OutboxKey.objects.exists()


def test_a_payload_that_looks_like_a_task_is_none() -> None:
    box = declare()
    payload = {"__honker_task__": {"task": "tests.app.tasks.nothing", "args": []}}
    box.enqueue([payload])
    Job.objects.update(payload='{"__honker_task__": {"task": "tests.app.tasks.nothing"}}')
    assert deliver_all(box) == [(None, {"__honker_task__": {"task": "tests.app.tasks.nothing"}})]


# -- lines ----------------------------------------------------------------------------------------------


def test_only_the_first_of_a_key_can_be_claimed() -> None:
    box = declare()
    for number, key in enumerate(["a", "a", "b", None, "a", "b"]):
        box.enqueue(number, key=key)
    assert run_at(box) == [0, 1, 0, 0, 1, 1]
    claimed = queues.Queue(box.queue_name).claim_batch("w", 10)
    assert sorted(job.payload for job in claimed) == [0, 2, 3]


def test_bulk_stands_in_line_as_one_by_one() -> None:
    one, bulk = declare(), declare()
    keys = ["a", None, "b", "a", "b", "c", "a"]
    one.enqueue("first", key="b")
    bulk.enqueue("first", key="b")
    for number, key in enumerate(keys):
        one.enqueue(number, key=key)
    ids = bulk.enqueue_many(range(7), keys=keys)
    assert len(set(ids)) == 7
    stored = dict(Job.objects.filter(queue=bulk.queue_name).values_list("pk", "payload"))
    assert [stored[int(each.split("-")[-2])] for each in ids] == list(map(str, range(7)))

    def lines(box: Outbox) -> list[Any]:
        payloads = dict(Job.objects.filter(queue=box.queue_name).values_list("pk", "payload"))
        rows = OutboxEvent.objects.filter(queue=box.queue_name).order_by("event_key", "sequence")
        return [(row.event_key, row.sequence, payloads[row.job_id]) for row in rows]

    assert lines(one) == lines(bulk)
    assert sorted(run_at(one)) == sorted(run_at(bulk))
    order = [event for event in deliver_all(bulk) if event[0] is not None]
    assert {key: [n for each, n in order if each == key] for key in "abc"} == {
        "a": [0, 3, 6],
        "b": ["first", 2, 4],
        "c": [5],
    }


def test_a_line_moves_on_when_its_first_event_was_delivered() -> None:
    box = declare()
    for number in range(4):
        box.enqueue(number, key=7)
    assert deliver_all(box) == [("7", number) for number in range(4)]
    assert not OutboxEvent.objects.exists()
    assert OutboxKey.objects.values_list("event_key", "sequence", "waiting").get() == ("7", 4, 0)
    box.enqueue(4, key=7)
    assert run_at(box) == [0]


def test_a_retry_keeps_its_place() -> None:
    box = declare(max_attempts=3)
    box.enqueue_many([1, 2], keys=["k", "k"])
    broken.append(1)
    drain(queue=box.queue_name, limit=2)
    assert run_at(box) == [0, 1]
    broken.clear()
    assert deliver_all(box) == [("k", 1), ("k", 2)]


def test_a_dead_event_blocks_its_key() -> None:
    box = declare()
    box.enqueue_many([1, 2, 3, 4], keys=["k", "k", "other", None])
    broken.append(1)
    assert sorted(deliver_all(box), key=str) == [("other", 3), (None, 4)]
    (blocked,) = box.blocked()
    dead = DeadJob.objects.get()
    assert blocked == (box.queue_name, "k", dead.pk, 2)
    box.enqueue(5, key="k")
    assert run_at(box) == [1, 1]
    assert event_lines.sweep("default", 0, []) == (0, 0)
    broken.clear()
    queues.requeue([dead.pk])
    delivered.clear()
    assert deliver_all(box) == [("k", 1), ("k", 2), ("k", 5)]
    assert box.blocked() == [] and not OutboxEvent.objects.exists()


def test_each_outbox_tells_of_its_own_blocked_keys() -> None:
    one, another = declare(), declare()
    broken.append(1)
    for box in (one, another):
        box.enqueue_many([1, 1], keys=["a", "b"])
        deliver_all(box)
    assert [each.key for each in another.blocked()] == ["a", "b"]
    assert [each.key for each in another.blocked(limit=1)] == ["a"]
    assert {each.queue for each in one.blocked()} == {one.queue_name}
    with pytest.raises(ValueError, match="limit"):
        one.blocked(limit=0)


def test_a_dead_event_can_be_skipped() -> None:
    box = declare(on_dead="skip")
    box.enqueue_many([1, 2], keys=["k", "k"])
    broken.append(1)
    assert deliver_all(box) == [("k", 2)]
    assert box.blocked() == []
    assert OutboxKey.objects.get().waiting == 0
    broken.clear()
    queues.requeue([DeadJob.objects.get().pk])
    box.enqueue(3, key="k")
    assert run_at(box) == [0, 0]
    delivered.clear()
    assert sorted(deliver_all(box)) == [("k", 1), ("k", 3)]
    assert OutboxKey.objects.get().waiting == 0


def test_what_died_while_nobody_knew_that_it_is_to_be_skipped() -> None:
    box = declare(on_dead="skip")
    box.enqueue_many([1, 2], keys=["k", "k"])
    factories.change(Job.objects.order_by("pk")[0].pk, expires_at=at(-1))
    queues.Queue(box.queue_name).sweep_expired()
    assert event_lines.sweep("default", 0, []) == (0, 0)
    assert event_lines.sweep("default", 0, [box.queue_name]) == (0, 1)
    assert event_lines.sweep("default", 0, [box.queue_name]) == (0, 0)
    assert deliver_all(box) == [("k", 2)]


@pytest.mark.parametrize(
    "how", ["cancelled", "acked by another program", "dead and deleted", "dead and cancelled"]
)
def test_a_sweep_finds_a_line_that_did_not_move_on(how: str) -> None:
    box = declare()
    box.enqueue_many([1, 2], keys=["k", "k"])
    first = Job.objects.order_by("pk")[0].pk
    if how == "cancelled":
        queues.cancel(first)
    elif how == "acked by another program":
        Job.objects.filter(pk=first).delete()
    else:
        broken.append(1)
        drain(queue=box.queue_name)
        if how == "dead and deleted":
            DeadJob.objects.all().delete()
        else:
            with transaction.atomic():
                queues.requeue([first])
                assert queues.cancel(first)
    assert run_at(box) == [1]
    assert event_lines.sweep("default", 0, []) == (0, 1)
    assert deliver_all(box) == [("k", 2)]
    assert OutboxKey.objects.get().waiting == 0


def test_a_sweep_looks_at_a_bounded_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_lines, "BATCH", 2)
    box = declare()
    box.enqueue_many([1, 2, 3], keys=["k", "k", "k"])
    ids = list(Job.objects.order_by("pk").values_list("pk", flat=True))
    assert event_lines.sweep("default", 0, []) == (ids[1], 0)
    assert event_lines.sweep("default", ids[1], []) == (0, 0)


def test_an_event_with_another_id_keeps_its_place() -> None:
    box = declare()
    box.enqueue_many([1, 2], keys=["k", "k"])
    first = Job.objects.order_by("pk")[0].pk
    factories.dead(first, "taken")
    broken.append(1)
    drain(queue=box.queue_name)
    (blocked,) = box.blocked()
    assert blocked.job_id != first and run_at(box) == [1]
    broken.clear()
    queues.requeue([blocked.job_id])
    assert deliver_all(box) == [("k", 1), ("k", 2)]


def test_keys_that_nobody_uses_are_forgotten() -> None:
    box = declare()
    box.enqueue(1, key="old")
    box.enqueue(2, key="fresh")
    deliver_all(box)
    box.enqueue(3, key="waiting")
    OutboxKey.objects.filter(event_key__in=["old", "waiting"]).update(touched_at=at(-event_lines.IDLE - 1))
    assert event_lines.count_keys("default") == 1
    assert event_lines.sweep_keys("default") == 1
    assert event_lines.sweep_keys("default") == event_lines.count_keys("default") == 0
    assert sorted(OutboxKey.objects.values_list("event_key", flat=True)) == ["fresh", "waiting"]


# -- side by side ---------------------------------------------------------------------------------------

servers = pytest.mark.only("postgresql", "mysql")  # on SQLite a transaction that writes is alone


@servers
def test_the_order_of_the_line_is_that_of_the_commits() -> None:
    box = declare()
    box.enqueue(0, key="k")
    begun, waits = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic():
            box.enqueue(1, key="k")
            begun.set()
            assert waits.wait(30)

    def second() -> None:
        assert begun.wait(30)
        with transaction.atomic():
            box.enqueue("elsewhere", key="another")
            box.enqueue(2, key="k")

    def watch() -> None:
        wait_until(waits_for_a_lock, what="the second one waits for the key")
        waits.set()

    together(first, second, watch)
    assert [event for event in deliver_all(box) if event[0] == "k"] == [("k", 0), ("k", 1), ("k", 2)]


@servers
def test_a_line_waits_for_nobody_and_moves_on_later() -> None:
    box = declare()
    box.enqueue(1, key="k")
    (job,) = queues.Queue(box.queue_name).claim_batch("w", 1)
    line = event_lines.of_jobs("default", [job.id])
    left: list[Any] = []

    def settle() -> None:
        assert queues.Queue(box.queue_name).ack(job)
        left.extend(event_lines.move_on("default", line, []))

    with transaction.atomic():
        box.enqueue(2, key="k")
        together(settle)
        assert left == line
    assert run_at(box) == [1]
    assert event_lines.move_on("default", left, []) == []
    assert deliver_all(box) == [("k", 2)]


@pytest.mark.only("mysql")
def test_an_older_snapshot_does_not_hide_who_stands_in_line() -> None:
    box = declare()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert not OutboxKey.objects.exists()
        together(lambda: box.enqueue(1, key="k"))
        box.enqueue(2, key="k")
    assert run_at(box) == [0, 1]


def test_many_at_once() -> None:
    box = declare()

    def put(writer: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(10):
                keys = [(number + offset) % 3 for offset in range(3)]
                box.enqueue_many([(writer, number)] * 3, keys=keys)

        return work

    together(*map(put, range(4)))
    found = deliver_all(box)
    assert len(found) == 120
    for key in "012":
        for writer in range(4):
            mine = [payload[1] for each, payload in found if each == key and payload[0] == writer]
            assert mine == list(range(10))
    assert set(OutboxKey.objects.values_list("sequence", "waiting")) == {(40, 0)}


# -- declarations and bad input -------------------------------------------------------------------------


def test_what_an_outbox_is_called() -> None:
    box = declare()
    assert get(box.name) is box and box in declared()
    with pytest.raises(UnknownOutbox, match="No outbox 'nowhere' is declared"):
        get("nowhere")
    with pytest.raises(ValueError, match="two"):
        outbox(box.name)(print)


def test_a_call_by_hand() -> None:
    box = declare()
    claim = factories.live(box.queue_name)
    row = Job.objects.get(pk=claim)
    event = Event(row, Hold(), "by hand", None)
    box(event)
    assert delivered == [(None, "by hand")]
    assert event.created_at == datetime.fromtimestamp(row.created_at, UTC)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"on_dead": "panic"}, ValueError),
        ({"batch": 0}, ValueError),
        ({"batch": 1_001}, ValueError),
        ({"batch": "many"}, TypeError),
        ({"max_attempts": 0}, ValueError),
        ({"max_attempts": "5"}, TypeError),
        ({"base_backoff": -1}, ValueError),
        ({"base_backoff": float("nan")}, ValueError),
        ({"visibility_timeout": 0}, ValueError),
        ({"timeout": 0}, ValueError),
        ({"retry_on": "ValueError"}, TypeError),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        outbox("never", **options)


@pytest.mark.parametrize("name", ["", " a", "a\n", "_outbox:a", "x" * 184])
def test_bad_names(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        outbox(name)
    with pytest.raises(TypeError):
        outbox(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("payload", "key", "error"),
    [
        (object(), None, TypeError),
        ({"a": float("nan")}, "k", ValueError),
        ({1: 1, "1": 2}, None, ValueError),
        (1, "", ValueError),
        (1, " k", ValueError),
        (1, "k\x00", ValueError),
        (1, "x" * 192, ValueError),
        (1, True, TypeError),
        (1, 1.5, TypeError),
        (1, b"k", TypeError),
    ],
)
def test_bad_events(payload: Any, key: Any, error: type[Exception]) -> None:
    box = declare()
    with transaction.atomic():
        with pytest.raises(error):
            box.enqueue(payload, key=key)
        with pytest.raises(error):
            box.enqueue_many([0, payload], keys=[None, key])
        with pytest.raises(error):
            box.enqueue_on_commit(payload, key=key)
        box.enqueue("good")
    assert [payload for _, payload in deliver_all(box)] == ["good"]


def test_keys_without_payloads() -> None:
    with pytest.raises(ValueError, match="one for each payload: 2, not 1"):
        declare().enqueue_many([1, 2], keys=["k"])
    assert declare().enqueue_many([]) == []


# -- on commit, and another database --------------------------------------------------------------------


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_on_commit_of_another_database() -> None:
    box = declare()
    with transaction.atomic(using="other"):
        box.enqueue_on_commit(1, key="k", using="other")
        assert not Job.objects.exists()
    with transaction.atomic(using="other"):
        box.enqueue_on_commit(2, using="other")
        transaction.set_rollback(True, using="other")
    box.enqueue_on_commit(3)
    assert deliver_all(box) == [("k", 1), (None, 3)]


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_on_commit_it_says_what_was_said_then() -> None:
    box, payload = declare(), {"order": 1}
    with transaction.atomic(using="other"):
        box.enqueue_on_commit(payload, using="other")
        payload["order"] = 2
    assert deliver_all(box) == [(None, {"order": 1})]


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_an_outbox_in_the_database_of_the_business() -> None:
    box = declare()
    with transaction.atomic(using="other"):
        box.enqueue(1, key="k", using="other")
        box.enqueue(2, key="k", using="other")
    assert not Job.objects.exists()
    call_command("check")
    drain(queue=box.queue_name, using="other")
    assert delivered == [("k", 1), ("k", 2)]
