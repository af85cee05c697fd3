"""What one side notifies, the other's listeners hear: the same rows, after the commit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from alkstore_django.notifications import listen, notify, notify_many, prune
from tests.interop import honker
from tests.interop.processes import finished
from tests.interop.shared import SharedFile

LISTENER = """
import asyncio, json, sys
import honker

async def main():
    listener = honker.open(sys.argv[1]).listen("orders")
    print("ready", flush=True)
    async for each in listener:
        print(json.dumps([each.id, each.channel, each.payload, each.created_at]), flush=True)
        if each.payload == "end":
            return

asyncio.run(main())
"""

NOTIFIER = """
import honker, json, sys

database = honker.open(sys.argv[1])
ids = []
for payload in json.loads(sys.argv[2]):
    with database.transaction() as transaction:
        ids.append(transaction.notify("orders", payload))
try:
    with database.transaction() as transaction:
        transaction.notify("orders", "undone")
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
print(json.dumps(ids))
"""

PRUNER = """
import honker, sys
print(honker.open(sys.argv[1]).prune_notifications(max_keep=int(sys.argv[2])))
"""

INSERT = "INSERT INTO _honker_notifications (id, channel, payload) VALUES (%s, %s, '1')"
PAYLOADS: list[Any] = [{"id": 7, "é": [1.5, True, None]}, "text", "\x00 and \ud800", 0, [], None, ""]


@contextmanager
def their_listener(shared: SharedFile) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with honker.started("-c", LISTENER, shared.path, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def test_their_listener_hears_ours(shared: SharedFile) -> None:
    with their_listener(shared) as process:
        ids = [notify("orders", payload) for payload in PAYLOADS]
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            notify("orders", "undone")
            raise ZeroDivisionError
        notify("others", 1)
        ids += notify_many("orders", ["many", "end"])
        heard = [json.loads(line) for line in finished(process).splitlines()]
    assert [row[0] for row in heard] == ids
    assert [row[2] for row in heard] == [*PAYLOADS, "many", "end"]
    stored = shared.rows("SELECT created_at FROM _honker_notifications WHERE channel = 'orders' ORDER BY id")
    assert [row[3] for row in heard] == [row["created_at"] for row in stored]


def test_our_listener_hears_theirs(shared: SharedFile) -> None:
    with listen("orders", timeout=30) as heard:
        ids = json.loads(honker.run(NOTIFIER, shared.path, json.dumps(PAYLOADS)))
        found = [next(heard) for _ in ids]
        assert [each.id for each in found] == ids
        assert [each.payload for each in found] == PAYLOADS
        last = notify("orders", "end")
        assert next(heard).id == last


@pytest.mark.parametrize("keep", [0, 2, 10])
def test_both_prune_the_same(shared: SharedFile, keep: int) -> None:
    def rows() -> list[dict[str, Any]]:
        return shared.rows("SELECT id, channel FROM _honker_notifications ORDER BY id")

    def fill() -> None:
        shared.execute("DELETE FROM _honker_notifications")
        for number in (90, 95, 100, 101, 110):
            values = (number, "a" if number % 2 else "b")
            shared.execute(
                "INSERT INTO _honker_notifications (id, channel, payload) VALUES (%s, %s, '1')", *values
            )

    fill()
    theirs = int(honker.run(PRUNER, shared.path, keep)), rows()
    fill()
    assert (prune(max_keep=keep), rows()) == theirs
