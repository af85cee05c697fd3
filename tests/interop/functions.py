"""honker's SQL functions, called in a process of its own."""

from __future__ import annotations

import json
from typing import Any

from tests.interop import honker
from tests.interop.shared import SharedFile

CALL = """
import json, sys, honker

db = honker.open(sys.argv[1])
with db.transaction() as tx:
    for sql, params in json.loads(sys.argv[2]):
        [row] = tx.query(sql, params)
        print(json.dumps(next(iter(row.values()))))
"""


def ask_all(shared: SharedFile, *calls: tuple[Any, ...]) -> list[Any]:
    """What functions answer, in one transaction: each is its name and what it is given."""
    statements = [
        [f"SELECT honker_{function}({', '.join('?' for _ in params)})", params] for function, *params in calls
    ]
    return [json.loads(line) for line in honker.run(CALL, shared.path, json.dumps(statements)).splitlines()]


def ask(shared: SharedFile, function: str, *params: Any) -> Any:
    """What one answers."""
    return ask_all(shared, (function, *params))[0]
