"""Processes that a task has forked. One that comes back from the task would be a second worker."""

from __future__ import annotations

import os
from typing import Any

_forks = 0
"""How many lie between this process and the one that has imported this."""


class OneProcess:
    """``with`` it around the code of a task: a child that comes back ends. It has the claims and the
    connections of the worker, and is not the worker. Whoever forks is to call ``os._exit`` in the child, as
    ``multiprocessing`` does."""

    __slots__ = ("_before", "_claim")

    def __init__(self, claim: Any) -> None:
        self._claim = claim
        self._before = _forks

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        if _forks == self._before:
            return
        try:
            what = "a process that its task has forked came back from it. It ends."
            # No log: another thread may have had its locks.
            os.write(2, f"Job id={self._claim.id}: {what}\n".encode())
        finally:
            os._exit(1)


def _note() -> None:
    global _forks  # noqa: PLW0603 - the process is the module
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)
