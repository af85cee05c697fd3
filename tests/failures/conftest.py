"""Servers of the run's own, and for each test a database on one of them, or a file.

A test that takes ``home`` runs on all three databases; ``@pytest.mark.homes("postgresql")`` says on which.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.failures import homes, matrix_table
from tests.failures.homes import Home
from tests.failures.load import Load
from tests.processes import Journal, Workers, gate, journal, workers

__all__ = ["gate", "journal", "workers"]

PROGRAMS = ("setpriv", "ip", "mount", "mariadbd", "mariadb-install-db", "pgbouncer", "pg_ctlcluster")

KINDS = ("sqlite", "postgresql", "mysql")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="twenty repetitions of each cell of the kill matrix")
    parser.addoption("--soak", type=float, default=60, help="seconds that the soak takes (default: 60)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "homes(*kinds): runs on these of sqlite, postgresql, mysql")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "home" in metafunc.fixturenames:
        marks = metafunc.definition.iter_markers("homes")
        kinds = next((mark.args for mark in marks), KINDS)
        metafunc.parametrize("home", kinds, indirect=True, scope="function")


@pytest.fixture(scope="session", autouse=True)
def _machine_has_it_all() -> None:
    """Elsewhere the tests are skipped, except where all of them must run."""
    missing = [name for name in PROGRAMS if not shutil.which(name)] + ["root"] * (os.geteuid() != 0)
    if missing:
        act = pytest.fail if os.environ.get("ALKSTORE_REQUIRE") == "1" else pytest.skip
        act(f"here is no {', '.join(missing)}")


@pytest.fixture(scope="session", autouse=True)
def _databases_are_ours(django_db_blocker: Any) -> Iterator[None]:
    """No test database of pytest-django's is made; connections lead where a test says."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Home]]:
    """The server of a kind, started at its first use, with a migrated database."""
    started: dict[str, Home] = {}

    def server(kind: str) -> Home:
        if kind not in started:
            home = homes.on(homes.SERVERS[kind]())
            started[kind] = home
            home.server.start()
            home.create()
            with home.opened():
                home.migrate()
        return started[kind]

    try:
        yield server
    finally:
        for home in started.values():
            home.server.remove()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with our tables; copy it."""
    home = homes.sqlite(tmp_path_factory.mktemp("migrated") / "home.sqlite3")
    with home.opened():
        home.migrate()
    return home.path


@pytest.fixture
def home(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    migrated: Path,
    servers: Callable[[str], Home],
    workers: Workers,
) -> Iterator[Home]:
    """An empty database, which is ``default`` for the test and, through ``workers``, for its processes."""
    if request.param == "sqlite":
        home = homes.sqlite(tmp_path / "home.sqlite3")
        shutil.copy(migrated, home.path)
    else:
        home = servers(request.param)
        home.server.start()
    workers.environment = home.environment
    with home.opened():
        home.clear()
        yield home
        workers.reap()
        if home.server is not None:
            home.server.thaw()
            home.server.start()


@pytest.fixture
def load(home: Home, workers: Workers, journal: Journal) -> Load:
    return Load(workers, journal)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [each for each in terminalreporter.getreports("passed") if each.when == "call"]
    if cells := [value for each in reports for name, value in each.user_properties if name == "cell"]:
        terminalreporter.section("repetitions x starts of the task")
        for row in matrix_table.rows(cells):
            terminalreporter.write_line(row)
