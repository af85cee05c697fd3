"""Start the worker again whenever its code has changed (``--reload``), as ``runserver`` does.

One process waits and restarts; the other works, with the signals of the terminal and with Django's
watch over its modules. Unlike ``runserver`` it stops gracefully: a task that is cut off would be
missing until its claim lapses.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

from django.apps import apps
from django.utils import autoreload

from alkstore_django.logs import get_logger

from .exits import CHANGED, DONE, FAILED, STUCK
from .shutdown import GRACEFUL, HANGUP, SIGNALS, hear_of_children

logger = get_logger("alkstore_django.supervisor")

PARENT = "ALKWORKER_RELOADED_BY"
"""The variable that says to a process who starts it again."""


class _Stopped(BaseException):
    """A signal came while no worker ran."""


class Reloader:
    """The process that waits."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self) -> int:
        """Returns the exit code of the last worker; 1 for one that a signal has ended. The one of a stop ends
        a worker by itself only before it has begun: then all is well."""
        hear_of_children()
        for number in (*SIGNALS, HANGUP):
            if number is not None:
                signal.signal(number, self._received)
        code = CHANGED
        with suppress(_Stopped):
            while code != DONE and not self._is_stopped:
                if code not in (CHANGED, STUCK):
                    logger.error("The worker ended with %s; it waits for a change of its code.", code)
                    _wait_for_change()
                code = self._work()
        is_well = code == CHANGED or (self._is_stopped and -code in SIGNALS)
        return DONE if is_well else code if code >= 0 else FAILED

    def _work(self) -> int:
        environment = {**os.environ, PARENT: str(os.getpid())}
        self._process = subprocess.Popen(self._command, env=environment)  # noqa: S603 - our own command
        code = self._process.wait()
        self._process = None
        return code

    def _received(self, number: int, frame: FrameType | None) -> None:
        self._is_stopped = True
        if self._process is None:
            raise _Stopped
        if not _is_for_all(number):
            self._process.send_signal(number)


def _is_for_all(number: int) -> bool:
    """Whether the signal may come from the terminal, which sends it to the worker, too."""
    if number == signal.SIGTERM:
        return False
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except AttributeError:  # Windows: a Ctrl-C reaches everybody at the console
        return True
    except OSError:
        return False


def _wait_for_change() -> None:
    """Of any module that an app has: what broke may not even be imported here."""
    reloader = autoreload.get_reloader()
    for config in apps.get_app_configs():
        if not autoreload.is_django_path(config.path):
            reloader.watch_dir(config.path, "**/*.py")
    with suppress(SystemExit):  # how Django's reloader says it
        reloader.run_loop()


class CodeWatch:
    """In the process that works: whether its code has changed, and whether somebody waits for it."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self.has_seen_change = False

    @classmethod
    def taken(cls) -> CodeWatch | None:
        """That of this process, if it has one; what this process starts is none of its business."""
        parent = os.environ.pop(PARENT, "")
        return cls(int(parent)) if parent else None

    def follow(self, stop: Callable[[int], None]) -> None:
        """From now on, call ``stop`` when the work must end, in a thread of its own."""
        for look in (self._look_at_code, self._look_at_parent):
            threading.Thread(target=look, args=[stop], name="alkworker-watch", daemon=True).start()

    def _look_at_code(self, stop: Callable[[int], None]) -> None:
        reloader = autoreload.get_reloader()
        autoreload.autoreload_started.send(sender=reloader)
        with suppress(SystemExit):
            reloader.run_loop()
        self.has_seen_change = True
        stop(GRACEFUL)

    def _look_at_parent(self, stop: Callable[[int], None]) -> None:
        while os.getppid() == self._parent:
            time.sleep(1)
        stop(GRACEFUL)
