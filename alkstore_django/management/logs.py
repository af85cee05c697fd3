"""The log of a command that runs for long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from multiprocessing import current_process

LEVELS = {0: logging.ERROR, 1: logging.INFO, 2: logging.DEBUG, 3: logging.DEBUG}


def configure(verbosity: int, process: str = "") -> Callable[[], None]:
    """Show our own log lines, unless the project has decided about them. Returns what takes it back:
    who calls a command from code goes on, with the lines that it had before.

    ``process`` is the name of this process, if there are several: ``processName`` of every record.
    """
    if process:
        current_process().name = process
    logger = logging.getLogger("alkstore_django")
    level, handlers, propagate = logger.level, list(logger.handlers), logger.propagate

    def undo() -> None:
        logger.setLevel(level)
        logger.handlers, logger.propagate = handlers, propagate

    logger.setLevel(LEVELS[verbosity])
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        name = " %(processName)s" if process else ""
        handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s{name} %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
    return undo
