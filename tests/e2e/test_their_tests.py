"""The tests of a project that uses the app: nothing of ours is in the way of Django's test cases."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.processes import Workers

CASES = pytest.mark.parametrize(("cases", "number"), [("their_cases", 11), ("their_drains", 12)])


@CASES
def test_their_tests(workers: Workers, tmp_path: Path, cases: str, number: int) -> None:
    run_them(workers, tmp_path, cases, number, "tests.settings")


@pytest.mark.usefixtures("sqlite")
@CASES
def test_their_tests_in_memory(workers: Workers, tmp_path: Path, cases: str, number: int) -> None:
    """Where Django has the test databases of SQLite, if nobody says otherwise."""
    run_them(workers, tmp_path, cases, number, "tests.e2e.in_memory")


def run_them(workers: Workers, tmp_path: Path, cases: str, number: int, settings: str) -> None:
    own = {
        "ALKSTORE_DB_PREFIX": f"{os.environ.get('ALKSTORE_DB_PREFIX', 'alkstore')}_their_{os.getpid()}",
        "ALKSTORE_TEST_DIR": str(tmp_path),
        "ALKSTORE_TEST_RUNNER": "nobody",
        "PYTEST_XDIST_WORKER": "",
    }
    arguments = ("test", f"tests.e2e.{cases}", "--noinput", "--settings", settings)
    run = workers.run("-m", "django", *arguments, **own)
    assert run.join(patience=240) == 0, run
    assert run.count(rf"^Ran {number} tests in ") == 1, run
    assert run.count(r"^OK$") == 1, run
