"""The doorbells on SQLite: one UNIX datagram socket each. Those of workers are rung after every commit
that puts a job into the queue, those of listeners after every commit that notifies.

A ring carries nothing and is never waited for; what it says is "look". There are none on Windows,
which has no such sockets in Python.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from urllib.parse import unquote, urlsplit

SUFFIX = ".bell"
"""Of the workers' bells."""

EAR = ".ear"
"""Of the listeners' bells; not longer."""

NAME_LENGTH = 1 + 16 + len(SUFFIX)

MAX_PATH = 107
"""Bytes of a socket's path; one more is the NUL at its end."""

ARE_POSSIBLE = hasattr(socket, "AF_UNIX")


@lru_cache(maxsize=64)
def file_of(name: object) -> str:
    """The real path of the database that Django's ``NAME`` means, which may be a ``file:`` URI."""
    text = str(name)
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    return os.path.realpath(text)


@lru_cache(maxsize=64)
def directories(file: str, chosen: str | os.PathLike[str] | None) -> tuple[str, ...]:
    """Where the bells of a database can be, best first: in ``chosen`` if that is given, else beside the
    file, else in the user's runtime directory. A path that is too long is left out."""
    own = hashlib.sha256(os.fsencode(file)).hexdigest()[:16]
    found = [f"{file}-bells", *(os.path.join(path, own) for path in runtime_directories())]
    if chosen is not None:
        found = [os.path.join(chosen, own)]
    return tuple(path for path in found if len(os.fsencode(path)) + NAME_LENGTH <= MAX_PATH)


def runtime_directories() -> tuple[str, ...]:
    """The user's own. Not every process of a user is told of it, so the other place counts as well."""
    told = os.environ.get("XDG_RUNTIME_DIR")
    made = os.path.join(tempfile.gettempdir(), f"alkstore-{os.getuid()}")
    return (told, made) if told else (made,)


def ring(paths: Sequence[str], suffix: str = SUFFIX) -> None:
    """Ring every bell of a kind in these directories; take away those whose owner was killed.

    Waits for nobody and raises nothing: one whose bell has rung enough already, and one whose bell
    may not be rung, look by themselves.
    """
    if found := list(hung(paths, suffix)):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for bell in found:
                _ring(sender, bell)


def hung(paths: Sequence[str], suffix: str = SUFFIX) -> Iterator[str]:
    """The bells of a kind in these directories, also of those that were killed."""
    for path in paths:
        with suppress(OSError):  # nobody was there, or it is not for us
            yield from [os.path.join(path, name) for name in os.listdir(path) if name.endswith(suffix)]


def _ring(sender: socket.socket, bell: str) -> None:
    try:
        sender.sendto(b"", bell)
    except ConnectionRefusedError:  # also for what is no socket at all
        with suppress(OSError):  # somebody else was quicker, or it is not ours to take away
            if stat.S_ISSOCK(os.lstat(bell).st_mode):
                os.unlink(bell)
    except OSError:
        pass
