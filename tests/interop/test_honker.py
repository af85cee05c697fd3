"""honker itself works here, and makes the tables that we mirror."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.interop import honker

ENQUEUE_AND_CLAIM = """
import honker, json, sys

database = honker.open(sys.argv[1])
queue = database.queue("emails")
sent = queue.enqueue({"to": "customer"})
job = queue.claim_one("w1")
print(json.dumps([sent, job.id, job.payload, job.attempts, job.ack(), queue.claim_one("w1")]))
"""


def schema(connection: sqlite3.Connection) -> dict[str, str]:
    """SQL text by name, whatever its white space."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {name: re.sub(r"\s+", "", sql) for name, sql in rows}


def test_a_fresh_file_of_honker(tmp_path: Path) -> None:
    path = tmp_path / "honker.db"
    assert json.loads(honker.run(ENQUEUE_AND_CLAIM, path)) == [1, 1, {"to": "customer"}, 1, True, None]
    with closing(sqlite3.connect(path)) as ours, closing(sqlite3.connect(":memory:")) as expected:
        expected.executescript((Path(__file__).parent / "schema.sql").read_text())
        assert schema(ours) == schema(expected)
