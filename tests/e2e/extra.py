"""Settings for a child process: with a module of the test's own, ``extra_tasks`` on ``PYTHONPATH``.

Each process opens a socket that whatever it starts would inherit, and tells PostgreSQL which one it is.
"""

from __future__ import annotations

import os
import socket

from tests.settings import *  # noqa: F403

ALKSTORE = {"IMPORTS": ["extra_tasks"]}

LEAK = socket.socket()
LEAK.set_inheritable(True)

os.environ["PGAPPNAME"] = f"process {os.getpid()}"
