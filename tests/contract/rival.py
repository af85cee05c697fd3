"""Another session that does something before each statement of a request, one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from types import TracebackType
from typing import Any

from django.contrib.messages import get_messages
from django.db import OperationalError, connections, transaction
from django.test import Client

from tests.factories import ask

IMPATIENCE = {
    "sqlite": "PRAGMA busy_timeout = 0",
    "postgresql": "SET lock_timeout = '5ms'",
    "mysql": "SET SESSION innodb_lock_wait_timeout = 0",
}
MOST = 200
"""Statements that no request of ours comes near to."""


class Turn:
    """``with turn:`` around a request; ``act`` is called before its statement of that number.

    ``did`` is what it returned: ``None`` if the request has locked what it wants, so that it comes later, or
    if there were fewer statements.
    """

    def __init__(self, number: int, act: Callable[[], Any]) -> None:
        self.number = number
        self.did: Any = None
        self.came = False
        self._act = act
        self._seen = 0

    def __enter__(self) -> Turn:
        self._wrapping = connections["default"].execute_wrapper(self._before)
        self._wrapping.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wrapping.__exit__(kind, error, trace)

    def _before(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        self._seen += 1
        if self._seen == self.number:
            self.came = True
            self.did = self._act()
        return execute(sql, params, many, context)


def turns(act: Callable[[], Any]) -> Iterator[Turn]:
    """``act`` in another session before each statement, until there was none of that number; all of it or
    nothing: in one transaction, which waits for nobody."""

    def attempt() -> Any:
        try:
            with transaction.atomic():
                return act() or True
        except OperationalError:
            return None

    with ThreadPoolExecutor(1, initializer=_impatient) as session:
        try:
            yield from _each(lambda: session.submit(attempt).result(30))
        finally:
            session.submit(connections.close_all).result(30)


def losses() -> Iterator[Turn]:
    """A failure in place of each statement."""

    def fail() -> None:
        raise OperationalError("the server is gone")

    return _each(fail)


def _each(act: Callable[[], Any]) -> Iterator[Turn]:
    for number in range(1, MOST):
        turn = Turn(number, act)
        yield turn
        if not turn.came:
            return
    raise AssertionError("the request does not end")


def told(client: Client, answer: Any) -> list[str]:
    """The messages of an answer, without another request, and without markup; they are not shown again."""
    client.cookies.pop("messages", None)
    messages = get_messages(answer.wsgi_request)
    return [unescape(re.sub(r"<[^>]*>", "", str(message))) for message in messages]


def _impatient() -> None:
    ask(IMPATIENCE[connections["default"].vendor])
