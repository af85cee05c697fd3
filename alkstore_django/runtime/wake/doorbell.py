"""The worker's, or listener's, end of a doorbell: the socket that others ring."""

from __future__ import annotations

import os
import socket
import stat
import uuid
from collections.abc import Sequence
from contextlib import suppress

from alkstore_django import bells

from .base import Wake


class Doorbell(Wake):
    """Hangs in one of the directories until it is closed. Raises ``OSError`` where that cannot be.

    Who may write the database file may ring; in a directory of the user's own, only the user.
    """

    def __init__(self, file: str, directory: str, suffix: str = bells.SUFFIX) -> None:
        bells.ring([directory], suffix)  # takes away those whose owners were killed
        self.directory = directory
        self._path = os.path.join(directory, uuid.uuid4().hex[:16] + suffix)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            _make_directory(directory, file)
            self._socket.bind(self._path)
            _share(self._path, file, 0)
        except OSError:
            self._socket.close()
            raise

    def arm(self) -> None:
        self.heard()

    def filenos(self) -> tuple[int, ...]:
        return (self._socket.fileno(),)

    def heard(self) -> bool:
        rang = False
        with suppress(BlockingIOError):
            while True:
                self._socket.recv(1)
                rang = True
        return rang

    def close(self) -> None:
        self._socket.close()
        with suppress(OSError):
            os.unlink(self._path)
            os.rmdir(self.directory)  # when it was the last


def hang(file: str, directories: Sequence[str], suffix: str = bells.SUFFIX) -> Doorbell | None:
    """A doorbell in the first of the directories that will do; ``None`` where none does."""
    for directory in directories:
        for _ in range(3):
            try:
                return Doorbell(file, directory, suffix)
            except FileNotFoundError:
                continue  # another one has just ended, and taken the directory away
            except OSError:
                break
    return None


def _make_directory(directory: str, file: str) -> None:
    parent = os.path.dirname(directory)
    if parent in bells.runtime_directories():
        with suppress(FileExistsError):
            os.mkdir(parent, 0o700)
        owner = os.lstat(parent)
        if not stat.S_ISDIR(owner.st_mode) or owner.st_uid != os.getuid() or owner.st_mode & 0o022:
            raise PermissionError(f"{parent} is not a directory of this user's own.")
    with suppress(FileExistsError):
        os.mkdir(directory)
        _share(directory, file, 0o700)


def _share(path: str, file: str, own: int) -> None:
    """Give ``path`` to those who have the file, with their rights; where one may read, one may enter."""
    origin = os.stat(file)
    with suppress(OSError):  # only root may give it to another user, and others to their groups
        os.chown(path, origin.st_uid if os.getuid() == 0 else -1, origin.st_gid)
    rights = stat.S_IMODE(origin.st_mode) & 0o666
    os.chmod(path, rights | (rights & 0o444) >> 2 | own if own else rights)
