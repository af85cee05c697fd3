"""The outbox: what a transaction says to the world outside is a row of that transaction.

::

    @outbox("orders")
    def announce(event):
        post("https://example.com/hooks", id=event.id, body=event.payload)

    with transaction.atomic():
        order.save()
        announce.enqueue({"order": order.pk}, key=order.customer_id)

Committed means that it will be delivered, at least once; rolled back means never. An event is a job of the
queue ``_outbox:orders`` with the payload as it is, so workers of ours deliver it, and so does any honker
program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from asgiref.sync import sync_to_async

from . import arrivals, commits, event_lines, registry
from .backoff import Backoff
from .contexts import Hold
from .events import Event as Event
from .events import event_id
from .exceptions import UnknownOutbox
from .handlers import Handler, check_function
from .models import Blocked, alias
from .names import checked
from .payloads import encode
from .selection import OUTBOXES
from .values import exception_classes, seconds, span, whole

Duration = int | float | timedelta

BLOCK, SKIP = "block", "skip"

BACKOFF_CAP = 3_600
"""Seconds that an event waits at most before the next attempt."""

LONGEST_NAME = 150
"""Characters: the ids of events begin with it, and are to be names themselves."""

MOST_AT_ONCE = 1_000
"""Events that one delivery may get: a worker holds all of them, and renews each claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox(Handler):
    """A declared outbox; call it to deliver an ``Event`` by hand."""

    name: str
    max_attempts: int
    on_dead: str
    takes_tasks: ClassVar[bool] = True

    def __call__(self, event: Event) -> Any:
        return self.func(event if self.batch is None else [event])

    @property
    def alias(self) -> str:
        """The database of its events, unless an enqueue says another."""
        return alias(self.using)

    def is_in(self, database: str) -> bool:
        """Without ``using`` it is wherever an enqueue puts its events."""
        return self.using is None or self.using == database

    @property
    def skips(self) -> bool:
        """Whether a dead event lets the later ones of its key pass."""
        return self.on_dead == SKIP

    def arguments(self, claim: Any, hold: Hold, args: Sequence[Any], key: str | None) -> list[Any]:
        event = Event(claim, hold, args[0], key)
        return [event if self.batch is None else [event]]

    # -- enqueue ----------------------------------------------------------------------------------

    def enqueue(self, payload: Any, *, key: str | int | None = None, using: str | None = None) -> str:
        """Put an event in, as a part of the caller's transaction; its ``Event.id``.

        ``payload`` is anything that JSON holds. Events of one ``key`` (1-191 characters, or an integer) are
        delivered one after the other, in the order of their commits; for that, transactions that enqueue for
        one key wait for each other. ``using`` is the database to put it into, by default that of the outbox:
        a worker must serve it. Raises ``TypeError`` and ``ValueError`` for bad input, before any SQL.
        """
        return self._put(using or self.alias, encode(payload), _key(key))

    def enqueue_many(
        self,
        payloads: Iterable[Any],
        *,
        keys: Iterable[str | int | None] | None = None,
        using: str | None = None,
    ) -> list[str]:
        """Put events in, all or none, in this order; their ids. ``keys`` has one for each payload.

        Takes the keys in an order of its own, so that two who use the same ones do not lock each other out.
        """
        texts = [encode(payload) for payload in payloads]
        wanted = [_key(key) for key in keys] if keys is not None else [None] * len(texts)
        if len(wanted) != len(texts):
            raise ValueError(f"keys must hold one for each payload: {len(texts)}, not {len(wanted)}.")
        if not texts:
            return []
        database = using or self.alias
        if any(key is not None for key in wanted):
            found = event_lines.add_many(database, self.queue_name, texts, wanted, self._row())
        else:
            found = arrivals.add_many(database, self.queue_name, texts, self._row())
        return [self._event_id(each) for each in found]

    def enqueue_on_commit(
        self,
        payload: Any,
        *,
        key: str | int | None = None,
        using: str | None = None,
        on: str | None = None,
    ) -> None:
        """Put an event in when a transaction on the database ``using`` is committed: business rows are there,
        and the outbox is in another database. At once, if there is none open.

        **It is the weaker promise.** If the process dies between the commit and the callback, or the other
        database is away, which is logged, the event is lost. It is better to have the outbox in the database
        of the business rows, ``enqueue(payload, using="business")`` in their transaction, and a worker for
        it: ``manage.py alkrelay --database business``.

        ``on`` is the database to put the event into, by default that of the outbox. Raises what ``enqueue``
        raises for bad input, at the call.
        """
        text, wanted, own = encode(payload), _key(key), on or self.alias
        commits.after(using or self.alias, own, lambda: self._put(own, text, wanted))

    aenqueue = sync_to_async(enqueue)
    aenqueue_many = sync_to_async(enqueue_many)
    aenqueue_on_commit = sync_to_async(enqueue_on_commit)

    def blocked(self, *, using: str | None = None, limit: int = 1_000) -> list[Blocked]:
        """Keys whose first event is a dead letter, up to ``limit``."""
        return event_lines.blocked(using or self.alias, self.queue_name, whole("limit", limit, 1))

    def _put(self, database: str, text: str, key: str | None) -> str:
        row = self._row()
        if key is None:
            return self._event_id(arrivals.add(database, self.queue_name, text, row))
        return self._event_id(event_lines.add(database, self.queue_name, text, key, row))

    def _row(self) -> dict[str, int | None]:
        return arrivals.row(self.max_attempts)

    def _event_id(self, arrival: Any) -> str:
        return event_id(self.name, arrival.id, arrival.created_at)


def outbox(
    name: str,
    *,
    using: str | None = None,
    max_attempts: int = 5,
    base_backoff: Duration = 5,
    visibility_timeout: Duration = 60,
    timeout: Duration | None = None,
    batch: int | None = None,
    retry_on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
    no_retry: type[BaseException] | tuple[type[BaseException], ...] = (),
    on_dead: str = BLOCK,
    store_result: bool = False,
    result_ttl: Duration | None = None,
) -> Callable[[Callable[[Event], Any]], Outbox]:
    """Declare the function that delivers the events of an outbox; the name then stands for an ``Outbox``.

    It gets an ``Event``, and may be a coroutine function. What it raises is tried again after
    ``base_backoff``, doubled each time up to an hour, give or take a tenth; after ``max_attempts`` the event
    is a dead letter. ``on_dead`` says what a dead event means for the later ones of its key: ``"block"``,
    they wait until it is requeued or deleted; ``"skip"``, they go on without it.

    Declare it in a module ``outbox`` (or ``tasks``) of an installed app: workers import it, and serve it if
    it is in their database (``using``; without, it is in any, and ``enqueue`` takes the router's by default).
    ``visibility_timeout`` is how long a claim holds without a sign of life of the worker, which renews it by
    itself; ``timeout`` how long a delivery may take. With ``store_result`` what the function returns is kept
    for ``result_ttl``, by default ``ALKSTORE["RESULT_TTL"]``.

    With ``batch`` it gets a list of 1 to ``batch`` events, for receivers to which many at once cost as
    little as one. When it raises, none counts as delivered, and each of them is tried again in a list of its
    own: one that is poisoned spoils no other. It runs in a thread then, a coroutine function too.

    Raises ``ValueError`` for a second function of that name, ``TypeError`` and ``ValueError`` for bad
    options.
    """
    queue = checked("outbox", f"{OUTBOXES}{_bare(name)}")
    if on_dead not in (BLOCK, SKIP):
        raise ValueError(f"on_dead must be {BLOCK!r} or {SKIP!r}, not {on_dead!r}.")
    options: dict[str, Any] = {
        "max_attempts": whole("max_attempts", max_attempts, 1),
        "backoff": Backoff(base=seconds("base_backoff", base_backoff), cap=BACKOFF_CAP),
        "visibility_timeout": seconds("visibility_timeout", visibility_timeout, low=1),
        "timeout": None if timeout is None else span("timeout", timeout, low=0.001),
        "batch": None if batch is None else whole("batch", batch, 1, MOST_AT_ONCE),
        "retry_on": exception_classes("retry_on", retry_on),
        "no_retry": exception_classes("no_retry", no_retry),
        "result_ttl": None if result_ttl is None else seconds("result_ttl", result_ttl, low=1),
    }

    def register(function: Callable[[Event], Any]) -> Outbox:
        check_function(f"@outbox({name!r})", function)
        declared = Outbox(
            func=function,
            name=name,
            queue_name=queue,
            using=using,
            on_dead=on_dead,
            takes_context=True,
            store_result=bool(store_result),
            **options,
        )
        registry.register_handler(declared)
        return declared

    return register


def get(name: str) -> Outbox:
    """The outbox of that name. Raises ``UnknownOutbox``; modules that no app has imported yet are imported
    first."""
    if registry.handler(f"{OUTBOXES}{name}") is None:
        registry.autodiscover()
    found = registry.handler(f"{OUTBOXES}{name}")
    if isinstance(found, Outbox):
        return found
    known = ", ".join(each.name for each in declared()) or "there is none"
    raise UnknownOutbox(f"No outbox {name!r} is declared: {known}.")


def declared() -> list[Outbox]:
    """Every outbox that was imported so far, by name."""
    found = [each for each in registry.handlers() if isinstance(each, Outbox)]
    return sorted(found, key=lambda each: each.name)


def _bare(name: object) -> str:
    """Raises ``TypeError`` and ``ValueError``; the prefix belongs to the queue, not to the name."""
    bare = checked("outbox", name)
    if len(bare) > LONGEST_NAME:
        raise ValueError(f"An outbox name has 1 to {LONGEST_NAME} characters, this has {len(bare)}.")
    if bare.startswith(OUTBOXES):
        raise ValueError(
            f"The outbox name {bare!r} begins with {OUTBOXES!r}, which its queue gets by itself."
        )
    return bare


def _key(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return checked("event key", value)
