"""An app for the settings of a victim: it stops the worker at one moment, until the test lets it go on.

``ALKSTORE_MOMENT`` names the moment, ``ALKSTORE_PAUSE`` the folder in which both sides leave files.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created

from alkstore_django.compat import task_finished, task_started

BEFORE_CLAIM, IN_CLAIM = "before the claim's commit", "in the claim's commit"
BEFORE_TASK, IN_TASK = "before the task", "in the task"
BEFORE_ACK, IN_ACK = "before the ack's commit", "in the ack's commit"
MOMENTS = (BEFORE_CLAIM, IN_CLAIM, BEFORE_TASK, IN_TASK, BEFORE_ACK, IN_ACK)

ARMED, GO = "armed", "go"
"""Files: the victim has come to its moment; it may go on."""


class MomentsConfig(AppConfig):
    name = "tests.failures"

    def ready(self) -> None:
        self.pause = Path(os.environ["ALKSTORE_PAUSE"])
        self.moment = os.environ["ALKSTORE_MOMENT"]
        self.has_network = os.environ.get("ALKSTORE_PAUSE_IN_NETWORK") == "1"
        """Whether the network stops the worker at a commit: a packet or its answer is held there."""
        self.has_started = self.has_finished = self.is_over = False
        self.is_marked = False
        task_started.connect(self.started)
        task_finished.connect(self.finished)
        connection_created.connect(self.connected)

    def stop_at(self, moment: str, *, in_network: bool = False) -> None:
        if moment == self.moment and not self.is_over:
            self.is_over = True
            (self.pause / ARMED).touch()
            if not in_network:
                self.wait()

    def wait(self) -> None:
        deadline = time.monotonic() + 60  # a test that has died lets nobody go on
        while not (self.pause / GO).exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    # -- the task ---------------------------------------------------------------------------------

    def started(self, **kwargs: Any) -> None:
        self.has_started = True
        self.stop_at(BEFORE_TASK)

    def finished(self, **kwargs: Any) -> None:
        self.has_finished = True

    # -- commits of the clerk, who is the main thread -----------------------------------------------

    def connected(self, connection: Any, **kwargs: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            connection.execute_wrappers.append(self.execute)
            commit = connection._commit
            connection._commit = lambda: self.commit(commit)

    def execute(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        def run() -> Any:
            return execute(sql, params, many, context)

        if not self.is_it(sql, params):
            return run()
        if context["connection"].in_atomic_block:
            self.is_marked = True
            return run()
        return self.around(run)

    def commit(self, commit: Callable[[], Any]) -> None:
        if self.is_marked:
            self.is_marked = False
            self.around(commit)
        else:
            commit()

    def is_it(self, sql: str, params: Any) -> bool:
        """Whether the statement claims the job, or ends it."""
        if isinstance(params, dict) and "entries" in params and self.has_finished:
            return '"ack"' in params["entries"]
        if sql.startswith("INSERT INTO temp.alkstore_turn "):
            return not self.has_started
        if sql.startswith("CREATE"):
            return False
        if self.has_finished:
            return "DELETE FROM _honker_live" in sql
        return not self.has_started and "SET state = 'processing'" in sql

    def around(self, write: Callable[[], Any]) -> Any:
        before, inside = (BEFORE_ACK, IN_ACK) if self.has_finished else (BEFORE_CLAIM, IN_CLAIM)
        self.stop_at(before, in_network=self.has_network)
        if self.has_network:
            self.stop_at(inside, in_network=True)
        done = write()
        self.stop_at(inside)
        return done
