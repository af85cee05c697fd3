"""honker, the other program that uses our tables: installed once, aside, and run in processes of its own.

Its wheel brings its own SQLite, and two SQLite libraries in one process drop each other's locks on a file.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.interop.processes import finished, running

VERSION = "0.5.0"
GLIBC = (2, 38)  # what the wheel is built for
HOME = Path(os.environ.get("ALKSTORE_HONKER_DIR") or Path(__file__).parents[2] / ".tox" / "honker")
SCRIPTS = Path(__file__).parent / "theirs"
"""What runs in honker's processes; none of it is ever imported by ours."""


class HonkerQueue:
    """honker's own ``Queue``: every method of it, answered by a process that has honker.

    Claimed jobs come back as dicts of ``id, payload, worker_id, attempts, claim_expires_at``; ``query(sql)``
    reads with honker's connection.
    """

    def __init__(self, ask: Callable[..., Any], number: int) -> None:
        self._ask = ask
        self._number = number

    def __getattr__(self, method: str) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            return self._ask("call", self._number, method, args, keywords)

        return call


class HonkerProcess:
    """A process that has honker, and opens queues of it on any file."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @contextmanager
    def queue(self, path: Path, name: str, **options: int) -> Iterator[HonkerQueue]:
        """A queue on a freshly opened file, with the options of honker's ``Database.queue``."""
        number = self._ask("open", str(path), name, options)
        try:
            yield HonkerQueue(self._ask, number)
        finally:
            self._ask("close", number)

    def _ask(self, *call: Any) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(call) + "\n")
        stdin.flush()
        answer = json.loads(stdout.readline() or '{"error": "the process ended"}')
        if "error" in answer:
            raise AssertionError(f"honker could not {call}: {answer['error']}")
        return answer["answer"]


@contextmanager
def process() -> Iterator[HonkerProcess]:
    with started(SCRIPTS / "calls.py", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as popen:
        yield HonkerProcess(popen)
        finished(popen)


def run(script: str, *arguments: object, database: Path | None = None) -> str:
    """The output of a Python script that may import honker, and what is in ``theirs``."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started("-c", script, *arguments, database=database, **pipes) as popen:
        return finished(popen)


def started(
    *arguments: object, database: Path | None = None, **pipes: Any
) -> AbstractContextManager[subprocess.Popen[str]]:
    """A Python process that may import honker; ``theirs/tasks.py`` opens the ``database``."""
    install()
    # Our development mode and our warnings as errors are no business of honker's.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"PYTHONPATH": f"{HOME}{os.pathsep}{SCRIPTS}", "HONKER_DATABASE": str(database)}
    # -P: this folder has a honker.py, too
    return running([sys.executable, "-P", *map(str, arguments)], environment, **pipes)


def install() -> None:
    if HOME.is_dir():
        return
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME.parent) as scratch:
        target = Path(scratch) / "honker"
        too_old = tuple(map(int, platform.libc_ver()[1].split("."))) < GLIBC
        foreign = f"--platform=manylinux_2_38_{platform.machine()} --python-version=3.12" if too_old else ""
        options = f"--quiet --no-deps --only-binary=:all: --target={target} {foreign}"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        subprocess.run(
            [sys.executable, "-m", "pip", "install", *options.split(), f"honker=={VERSION}"],
            env=environment,
            check=True,
        )
        if too_old:
            share_sqlite(target)
        target.rename(HOME)


def share_sqlite(target: Path) -> None:
    """The bundled SQLite is the one file that needs the newer glibc: the system's takes its place."""
    ctypes.CDLL("libsqlite3.so.0")
    maps = Path("/proc/self/maps").read_text().splitlines()
    system = next(line.split()[-1] for line in maps if "libsqlite3.so" in line)
    for bundled in target.glob("honker.libs/libsqlite3-*.so*"):
        bundled.unlink()
        bundled.symlink_to(system)
