"""Every check appears when its mistake is made, says what to do, and is silent otherwise."""

from __future__ import annotations

import ast
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import ConnectionHandler, connection, connections
from django.test import override_settings

from alkstore_django import checks, sqlite_file
from alkstore_django.conf import KEYS

# On MySQL Django asks the server what it is when it checks a model.
pytestmark = pytest.mark.django_db(databases=["default", "other"])

OURS = "alkstore_django.backends.AlkstoreBackend"
IMMEDIATE = {"transaction_mode": "IMMEDIATE"}

Database = Callable[..., str]


def found(**options: Any) -> dict[str, Any]:
    """The messages of our checks by id (without the prefix of the app)."""
    messages = [message for message in run_checks(**options) if message.id.startswith("alkstore_django.")]
    by_id = {message.id.partition(".")[2]: message for message in messages}
    assert len(by_id) == len(messages)
    return by_id


def tasks(alias: object = None) -> Any:
    """Settings in which the jobs are in that database."""
    return override_settings(TASKS={"default": {"BACKEND": OURS, "OPTIONS": {"DATABASE": alias}}})


def python(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, with the settings of the tests."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def database() -> Iterator[Database]:
    """Adds a database to the settings, in which the jobs then are; gives its alias."""
    added: list[str] = []

    def add(engine: str = "django.db.backends.sqlite3", **settings: Any) -> str:
        alias = f"extra{len(added)}"
        handler = ConnectionHandler({"default": {}, alias: {"ENGINE": engine, **settings}})
        connections.settings[alias] = handler.settings[alias]
        added.append(alias)
        return alias

    yield add
    for alias in added:
        if driver := connections[alias].connection:
            driver.close()  # Django's own close() leaves a database in memory open
        del connections[alias], connections.settings[alias]


@pytest.fixture
def reachable(django_db_blocker: Any) -> Iterator[None]:
    """Databases that the test adds may be opened."""
    with django_db_blocker.unblock():
        yield


# -- nothing to say -----------------------------------------------------------------------------------


@pytest.mark.django_db(databases=["default", "other"])
def test_a_sound_project_hears_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check", databases=["default", "other"])
    printed = capsys.readouterr()
    assert printed.out.strip() == "System check identified no issues (0 silenced)."
    assert printed.err == ""


def test_without_databases_asked_for_none_is_touched() -> None:
    with tasks("other"):  # the mark django_db is missing: a query would fail
        assert set(found()) == {"W005"}


def test_an_app_that_is_installed_registers_them_and_those_of_django_tasks() -> None:
    """Asked of a fresh process: here the tests have imported the modules already."""
    program = (
        "import django; django.setup()\n"
        "from django.core.checks.registry import registry\n"
        "print({check.__module__ for check in registry.registered_checks})"
    )
    family = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
    registered = python(program).stdout
    assert f"'{family}.checks'" in registered
    assert "'alkstore_django.checks'" in registered


def test_other_backends_and_broken_ones_are_not_ours_to_judge() -> None:
    dummy = f"django{'.' if django.VERSION >= (6, 0) else '_'}tasks.backends.dummy.DummyBackend"
    broken: list[Any] = [{}, None, {"BACKEND": "no.such.Backend"}, {"BACKEND": 1}]
    broken += [{"BACKEND": OURS, "OPTIONS": 1}]
    for each in [{"BACKEND": dummy, "OPTIONS": {"DATABASE": "nowhere"}}, *broken]:
        with override_settings(TASKS={"default": each}):
            assert checks.check_aliases() == []
    with override_settings(TASKS=None):
        assert checks.check_aliases() == []


# -- ALKSTORE -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, [], "RESULT_TTL", 1])
def test_e001_alkstore_is_a_dict(value: object) -> None:
    with override_settings(ALKSTORE=value):
        message = found()["E001"]
    assert repr(value) in message.msg
    with override_settings(ALKSTORE={}):
        assert found() == {}


def test_e002_knows_every_key() -> None:
    assert set(checks.KINDS) == set(KEYS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("IMPORTS", "shop.jobs"),
        ("IMPORTS", [""]),
        ("IMPORTS", [1]),
        ("IMPORTS", None),
        ("VISIBILITY_TIMEOUT", 0),
        ("VISIBILITY_TIMEOUT", None),
        ("VISIBILITY_TIMEOUT", True),
        ("VISIBILITY_TIMEOUT", "60"),
        ("RESULT_TTL", 0),
        ("RESULT_TTL", 1.5),
        ("RESULT_TTL", False),
        ("DOORBELL", None),
        ("NOTIFY", 1),
        ("SOCKET_DIR", ""),
        ("SOCKET_DIR", True),
        ("SCHEDULES", ["nightly"]),
        ("CATCH_UP_GRACE", -1),
        ("CATCH_UP_GRACE", 1.5),
    ],
)
def test_e002_wrong_values(key: str, value: object) -> None:
    with override_settings(ALKSTORE={key: value}):
        messages = found()
    assert set(messages) == {"E002"}
    assert key in messages["E002"].msg
    assert repr(value) in messages["E002"].msg


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("@daily", "must be a dict"),
        ({"task": "tests.app.tasks.nothing"}, "expression: "),
        ({"task": "tests.app.tasks.nothing", "expression": "61 * * * *"}, "expression: "),
        ({"task": "tests.app.tasks.nothing", "expression": "0 0 30 2 *"}, "expression: "),
        ({"task": "tests.app.tasks.nothing", "expression": "@daily", "timezone": "Mars"}, "timezone: "),
        ({"task": "tests.app.tasks.missing", "expression": "@daily"}, "task: "),
        ({"task": "tests.app.tasks.nothing", "expression": "@daily", "when": 1}, "'when': "),
        ({"task": "tests.app.tasks.nothing", "expression": "@daily", "args": [1]}, "args: "),
        ({"payload": 1, "expression": "@daily"}, "queue: "),
    ],
)
def test_e008_a_wrong_schedule(entry: object, why: str) -> None:
    with override_settings(ALKSTORE={"SCHEDULES": {"nightly": entry}}):
        messages = found()
    assert set(messages) == {"E008"}
    assert messages["E008"].msg.startswith("ALKSTORE[\"SCHEDULES\"]['nightly']: ")
    assert why in messages["E008"].msg


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("IMPORTS", ["shop.jobs"]),
        ("IMPORTS", ()),
        ("VISIBILITY_TIMEOUT", 1),
        ("RESULT_TTL", None),
        ("RESULT_TTL", 9),
        ("DOORBELL", False),
        ("SCHEDULES", {"s": {"task": "tests.app.tasks.nothing", "expression": "@daily"}}),
        ("CATCH_UP_GRACE", 0),
        ("NOTIFY", False),
        ("SOCKET_DIR", None),
        ("SOCKET_DIR", "/run/shop"),
        ("SOCKET_DIR", Path("/run/shop")),
    ],
)
def test_e002_sound_values(key: str, value: object) -> None:
    with override_settings(ALKSTORE={key: value}):
        assert found() == {}


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("RESULT_TLL", "Did you mean 'RESULT_TTL'?"),
        ("visibility_timeout", "Did you mean 'VISIBILITY_TIMEOUT'?"),
        ("ZZZ", f"There are: {', '.join(KEYS)}."),
        (1, f"There are: {', '.join(KEYS)}."),
    ],
)
def test_w001_an_unknown_key(key: object, hint: str) -> None:
    with override_settings(ALKSTORE={key: 1}):
        messages = found()
    assert set(messages) == {"W001"}
    assert messages["W001"].hint == hint
    assert repr(key) in messages["W001"].msg


# -- django.tasks on Django 5.2 -----------------------------------------------------------------------


def test_e003_and_w002_the_backport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(django, "VERSION", (5, 2, 0, "final", 0))
    monkeypatch.setitem(sys.modules, "django_tasks", None)  # as if it were not installed
    (message,) = checks.check_backport()
    assert message.id == "alkstore_django.E003"
    assert 'pip install "alkstore-django[backport]"' in str(message.hint)
    assert '"django_tasks"' in str(message.hint)

    monkeypatch.setattr(checks, "find_spec", lambda name: object())
    monkeypatch.setattr(checks.apps, "is_installed", lambda name: name != "django_tasks")
    (message,) = checks.check_backport()
    assert message.id == "alkstore_django.W002"
    assert "INSTALLED_APPS" in str(message.hint)

    monkeypatch.setattr(checks.apps, "is_installed", lambda name: True)
    assert checks.check_backport() == []
    monkeypatch.setattr(django, "VERSION", (6, 0, 0, "final", 0))
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert checks.check_backport() == []


def test_a_project_without_the_backport_is_told_and_not_thrown_at() -> None:
    """The whole of ``manage.py check``, admin included, in a process that cannot import the backport."""
    program = (
        "import sys; sys.modules['django_tasks'] = None\n"
        "from django.core.management import execute_from_command_line as run\n"
        "run(['manage.py', 'check'])"
    )
    told = python(program)
    assert "Traceback" not in told.stderr
    assert ("alkstore_django.E003" in told.stderr) == (django.VERSION < (6, 0))
    assert told.returncode == (django.VERSION < (6, 0))


# -- which database -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alias", "hint"),
    [("othr", "Did you mean 'other'?"), ("zzz", "There are: default, other."), (["other"], None), (5, None)],
)
def test_e004_an_unknown_alias(alias: object, hint: str | None) -> None:
    with tasks(alias):
        messages = found()
    assert set(messages) == {"E004"}
    assert 'TASKS[\'default\']["OPTIONS"]["DATABASE"]' in messages["E004"].msg
    assert hint is None or messages["E004"].hint == hint


@pytest.mark.parametrize("alias", [None, "", "default"])
def test_e004_and_w005_the_default_database(alias: str | None) -> None:
    with tasks(alias):
        assert found() == {}


def test_w005_jobs_beside_the_default_database() -> None:
    with tasks("other"):
        messages = found()
    assert set(messages) == {"W005"}
    assert "'other'" in messages["W005"].msg
    assert "transaction.atomic(using='other')" in str(messages["W005"].hint)


class ToOther:
    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "alkstore_django" else None


@pytest.mark.parametrize("alias", [None, "other"])
def test_w005_says_once_what_a_router_does(alias: str | None) -> None:
    with override_settings(DATABASE_ROUTERS=[ToOther()]):
        with tasks(alias):
            assert set(found()) == {"W005"}
        with override_settings(TASKS={}):  # a project that uses queues and no tasks
            assert set(found()) == {"W005"}


# -- which database engine ----------------------------------------------------------------------------


def test_e005_an_engine_without_a_dialect(database: Database) -> None:
    with tasks(database("django.db.backends.dummy")):
        messages = found()
    assert set(messages) == {"E005", "W005"}
    assert "is unknown" in messages["E005"].msg


def test_a_missing_driver_is_not_ours_to_report() -> None:
    connections.settings["driverless"] = {"ENGINE": "no.such.engine"}
    try:
        with tasks("driverless"):
            assert checks.check_engines() == []
            assert checks.check_databases(databases=["driverless"]) == []
    finally:
        del connections.settings["driverless"]


def test_e006_an_old_sqlite_library(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tasks(database(NAME=str(tmp_path / "db"), OPTIONS=IMMEDIATE)):
        assert set(found()) == {"W005"}
        monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))
        assert set(found()) == {"E006", "W005"}


def test_w003_transactions_that_are_not_immediate(database: Database, tmp_path: Path) -> None:
    for options in ({}, {"transaction_mode": None}, {"transaction_mode": "EXCLUSIVE"}):
        with tasks(alias := database(NAME=str(tmp_path / "db"), OPTIONS=options)):
            messages = found()
            assert set(messages) == {"W003", "W005"}
            assert f"DATABASES['{alias}']" in str(messages["W003"].hint)
            assert checks.SQLITE_OPTIONS in str(messages["W003"].hint)
    for sound in ("IMMEDIATE", "immediate"):
        with tasks(database(NAME=str(tmp_path / "db"), OPTIONS={"transaction_mode": sound})):
            assert set(found()) == {"W005"}
    with tasks(database(NAME=":memory:")):
        assert set(found()) == {"W005"}
    assert not (tmp_path / "db").exists(), "a check of settings opened the file"


@pytest.mark.usefixtures("reachable")
def test_w006_a_file_that_a_power_cut_may_destroy(database: Database, tmp_path: Path) -> None:
    for synchronous, expected in (("OFF", {"W005", "W006"}), ("NORMAL", {"W005"}), ("FULL", {"W005"})):
        command = f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous};"
        options = {**IMMEDIATE, "init_command": command}
        with tasks(alias := database(NAME=str(tmp_path / "db"), OPTIONS=options)):
            assert set(found(databases=[alias])) == expected
            assert set(found()) == {"W005"}, "not asked for"


@pytest.mark.usefixtures("reachable")
def test_w007_a_file_on_a_network(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**IMMEDIATE, "init_command": "PRAGMA journal_mode=WAL;"}
    monkeypatch.setattr(sqlite_file, "network_type", lambda path: "nfs4" if "db" in str(path) else None)
    with tasks(alias := database(NAME=str(tmp_path / "db"), OPTIONS=options)):
        messages = found(databases=[alias])
        assert set(messages) == {"W005", "W007"}
        assert "(nfs4)" in messages["W007"].msg


@pytest.mark.usefixtures("reachable")
def test_w004_a_journal_that_is_not_wal(database: Database, tmp_path: Path) -> None:
    options = {**IMMEDIATE, "init_command": "PRAGMA journal_mode=DELETE"}
    with tasks(alias := database(NAME=str(tmp_path / "old"), OPTIONS=options)):
        messages = found(databases=[alias])
        assert set(messages) == {"W004", "W005"}
        assert "delete" in messages["W004"].msg
        assert checks.SQLITE_OPTIONS in str(messages["W004"].hint)
        assert set(found(databases=["default"])) == {"W005"}, "not asked for"
        assert set(found()) == {"W005"}, "not asked for"
    with tasks(alias := database(NAME=":memory:")):
        assert set(found(databases=[alias])) == {"W005"}


@pytest.mark.usefixtures("reachable")
def test_the_snippet_is_the_cure(database: Database, tmp_path: Path) -> None:
    """What the hint says, pasted, silences both warnings."""
    pasted = ast.literal_eval("{" + checks.SQLITE_OPTIONS + "}")
    with tasks(alias := database(NAME=str(tmp_path / "db"), **pasted)):
        assert set(found(databases=[alias])) == {"W005"}


@pytest.mark.django_db
def test_e007_a_server_without_skip_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "E007" not in found(databases=["default"])
    monkeypatch.setattr(connection.features, "has_select_for_update_skip_locked", False)
    messages = found(databases=["default"])
    assert ("E007" in messages) == (connection.vendor != "sqlite"), "SQLite has one writer: it needs none"
    assert "E007" not in found()


@pytest.mark.django_db
@pytest.mark.only("mysql")
@pytest.mark.parametrize(("version", "fits"), [((8, 0, 16), False), ((8, 0, 17), True), ((8, 4, 0), True)])
def test_e007_a_mysql_server_without_our_collation(
    version: tuple[int, ...], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "mysql_is_mariadb", False)
    monkeypatch.setattr(connection, "mysql_version", version)
    messages = found(databases=["default"])
    assert ("E007" not in messages) == fits
    assert fits or "utf8mb4_0900_bin" in messages["E007"].msg


@pytest.mark.usefixtures("reachable")
def test_a_database_that_is_away_fails_no_check(database: Database, tmp_path: Path) -> None:
    with tasks(alias := database(NAME=str(tmp_path / "no" / "such" / "folder" / "db"), OPTIONS=IMMEDIATE)):
        assert set(found(databases=[alias])) == {"W005"}
