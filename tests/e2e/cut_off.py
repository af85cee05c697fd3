"""Settings for a child process: the first statement of its main thread that ``ALKSTORE_CUT`` matches fails,
as if the connection were lost."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

from django.db import OperationalError
from django.db.backends.signals import connection_created

from tests.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ("tests.app.outboxes", "tests.app.contextual")}

left = [os.environ["ALKSTORE_CUT"]]


def fail_once(execute: Any, sql: str, *rest: Any) -> Any:
    if left and re.match(left[0], sql):
        left.clear()
        raise OperationalError("cut off")
    return execute(sql, *rest)


def connected(connection: Any, **kwargs: Any) -> None:
    if threading.current_thread() is threading.main_thread():
        connection.execute_wrappers.append(fail_once)


connection_created.connect(connected, weak=False)
