"""Run the suite on one database: python -m tests.run [sqlite|postgresql|mysql] [pytest arguments].

``--report=NAME`` names the file in ``.tox/reports``, where an environment of tox runs several times.
Where the database cannot be had it says so in one line and succeeds; with ALKSTORE_REQUIRE=1 it fails.
"""

from __future__ import annotations

import importlib
import os
import platform
import socket
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.servers import address

REPORTS = Path(__file__).parents[1] / ".tox" / "reports"
LABELS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MariaDB"}


class NotHere(Exception):
    """Why the suite cannot run on a database."""


def sqlite() -> str:
    return f"SQLite {sqlite3.sqlite_version}"


def postgresql() -> str:
    login = answering("postgresql")
    try:
        import psycopg
    except ImportError as error:
        raise NotHere(f"its driver is missing: {error}") from error
    try:
        with psycopg.connect(dbname="postgres", **login) as connection:
            return f"PostgreSQL {connection.info.parameter_status('server_version').split()[0]}"
    except psycopg.Error as error:
        raise NotHere(f"the server refuses us: {error}") from error


def mysql() -> str:
    login = answering("mysql")
    try:
        import MySQLdb
    except ImportError:
        MySQLdb = install_mysqlclient()
    try:
        connection = MySQLdb.connect(**login)
    except MySQLdb.Error as error:
        raise NotHere(f"the server refuses us: {error}") from error
    version = connection.get_server_info()
    connection.close()
    return f"{'MariaDB' if 'MariaDB' in version else 'MySQL'} {version.split('-')[0]}"


def answering(database: str) -> dict[str, Any]:
    """What a driver needs to log in, once the server takes connections."""
    server = address(database)
    host, port = server["HOST"], int(server["PORT"])
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        raise NotHere(f"no server answers on {host}:{port}") from error
    return {"host": host, "port": port, "user": server["USER"], "password": server["PASSWORD"]}


def install_mysqlclient() -> Any:
    print("MariaDB: a server answers, installing mysqlclient", flush=True)
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "mysqlclient"], stderr=subprocess.PIPE, text=True
    )
    if pip.returncode:
        print(pip.stderr, file=sys.stderr)
        raise NotHere("mysqlclient cannot be installed: it needs gcc, pkg-config and libmariadb-dev")
    importlib.invalidate_caches()
    return importlib.import_module("MySQLdb")


def run_pytest(database: str, server: str, report: Path, arguments: list[str]) -> int:
    import django

    suite = f"Python {platform.python_version()}, Django {django.__version__}, {server}"
    print(suite, flush=True)
    options = [f"--junit-xml={report}", "-o", f"junit_suite_name={suite}"]
    if not {"-n", "--pdb"} & {*arguments}:  # most tests wait for other processes
        options += ["-n", "6", "--dist=worksteal"]
    # A folder of the run's own: runs that share one fall over each other when they tidy it.
    with tempfile.TemporaryDirectory(prefix="alkstore-run-") as directory:
        return subprocess.run(
            [sys.executable, "-m", "pytest", f"--basetemp={directory}/tmp", *options, *arguments],
            env={**os.environ, "ALKSTORE_DB": database, "PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"},
        ).returncode


def main(arguments: list[str]) -> int:
    database = arguments.pop(0) if arguments and arguments[0] in LABELS else "sqlite"
    name = os.environ.get("TOX_ENV_NAME", "local")
    if arguments and arguments[0].startswith("--report="):
        name = arguments.pop(0).removeprefix("--report=")
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    try:
        server = {"sqlite": sqlite, "postgresql": postgresql, "mysql": mysql}[database]()
    except NotHere as why:
        print(f"{LABELS[database]}: not run, {why}")
        return 1 if os.environ.get("ALKSTORE_REQUIRE") == "1" else 0
    return run_pytest(database, server, report, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
