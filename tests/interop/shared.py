"""The file that both sides use: our ``default`` database, in this process and in those of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from django.db import connections

from tests.interop.processes import finished, running

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
FILE_NAME = "default.sqlite3"
"""What tests/settings.py calls the database in ALKSTORE_TEST_DIR."""


class SharedFile:
    """Looks at the file, and moves its times, with a connection of ours."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def execute(self, sql: str, *params: Any) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute(sql, params)

    def rows(self, sql: str, *params: Any) -> list[dict[str, Any]]:
        with connections["default"].cursor() as cursor:
            cursor.execute(sql, params)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def live(self, job_id: int) -> dict[str, Any] | None:
        return next(iter(self.rows("SELECT * FROM _honker_live WHERE id = %s", job_id)), None)

    def dead(self, job_id: int) -> dict[str, Any] | None:
        return next(iter(self.rows("SELECT * FROM _honker_dead WHERE id = %s", job_id)), None)

    def lapse(self, job_id: int) -> None:
        """The claim ended one second ago."""
        self.execute("UPDATE _honker_live SET claim_expires_at = unixepoch() - 1 WHERE id = %s", job_id)

    def set(self, job_id: int, column: str, offset: int) -> None:
        """Move one of a job's times to ``offset`` seconds from now."""
        self.execute(f"UPDATE _honker_live SET {column} = unixepoch() + %s WHERE id = %s", offset, job_id)

    def within_a_second(self, act: Callable[[], T]) -> T:
        """The answer of ``act`` from a time when the clock did not go on while it ran."""
        while True:
            before = self._now()
            answer = act()
            if self._now() == before:
                return answer

    def _now(self) -> int:
        return int(self.rows("SELECT unixepoch() AS now")[0]["now"])

    def manage(self, *arguments: object) -> str:
        """What a command of ours prints, run in a process of its own; it must succeed."""
        with self.started(*arguments, stdout=subprocess.PIPE) as process:
            return finished(process)

    def started(self, *arguments: object, **pipes: Any) -> AbstractContextManager[subprocess.Popen[str]]:
        """A command of ours that runs beside the test."""
        environment = os.environ | {
            "ALKSTORE_TEST_DIR": str(self.path.parent),
            "DJANGO_SETTINGS_MODULE": "tests.interop.settings",
        }
        command = [sys.executable, "-m", "django", *map(str, arguments)]
        return running(command, environment, cwd=ROOT, **pipes)


@contextmanager
def opened(path: Path) -> Iterator[SharedFile]:
    """``default`` is the file at ``path``, in every thread of this process."""
    connection = connections["default"]
    connection.close()
    before = connection.settings_dict["NAME"]
    connection.settings_dict["NAME"] = str(path)
    try:
        yield SharedFile(path)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
