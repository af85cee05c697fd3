"""How a process ends in which tasks have run: they may have begun what never ends."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import suppress

from alkstore_django.logs import get_logger

logger = get_logger("alkstore_django.worker")

PATIENCE, LOOK = 5.0, 0.5
"""Seconds that threads of tasks have to end, after the last task has, and between two looks after that."""


def end_at_once(code: int) -> None:
    """Wait for nobody: an ordinary end of Python would, for threads that interrupted tasks still hold."""
    try:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # broken, closed by a task, or never there
                stream.flush()
    finally:
        os._exit(code)


def end_soon(code: int) -> None:
    """Let Python end as it does. But for threads it would wait for ever, of ``ThreadPoolExecutor`` and others
    that are no daemons, and for children of ``multiprocessing``; and nobody would start the next worker."""
    threading.Thread(target=_insist, args=[code], name="alkworker-end", daemon=True).start()


def _insist(code: int) -> None:
    time.sleep(PATIENCE)
    while not _is_waiting():
        time.sleep(LOOK)
    ours = ("MainThread", "alkworker-")
    names = [each.name for each in threading.enumerate() if not each.name.startswith(ours)]
    if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
        names += [each.name for each in multiprocessing.active_children()]
    logger.warning("What tasks have begun does not end (%s): the process ends without it.", ", ".join(names))
    end_at_once(code)


def _is_waiting() -> bool:
    """Whether the main thread waits for others, and does not run what was registered for the end."""
    waits = [threading._shutdown.__code__]  # type: ignore[attr-defined]
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        waits.append(util._exit_function.__code__)
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_code not in waits:
        frame = frame.f_back
    return frame is not None
