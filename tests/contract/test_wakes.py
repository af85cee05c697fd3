"""What wakes the workers of a database, and what ``alkstatus`` says of it."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from alkstore_django import bells, looks, wakes
from alkstore_django.queues import Queue
from alkstore_django.runtime.wake.base import Several, Wake
from alkstore_django.runtime.wake.choice import choose
from alkstore_django.runtime.wake.data_version import DataVersion
from alkstore_django.runtime.wake.doorbell import Doorbell, hang
from alkstore_django.runtime.wake.listening import Listening
from alkstore_django.runtime.wake.polling import Polling

pytestmark = pytest.mark.django_db(transaction=True)

BEST = {"sqlite": Several, "postgresql": Listening, "mysql": Polling}


def chosen(listens: bool = True, interval: float | None = None) -> Wake:
    wake = choose("default", listens, interval)
    wake.close()
    return wake


def status() -> str:
    output = io.StringIO()
    call_command("alkstatus", stdout=output)
    return output.getvalue()


def test_the_best_there_is() -> None:
    assert type(chosen()) is BEST[connection.vendor]
    assert wakes.means("default").obstacle == ""
    assert "wakes" not in status()


def test_not_to_listen() -> None:
    assert type(chosen(listens=False)) is Polling


@pytest.mark.only("sqlite", "postgresql")
def test_switched_off(settings: Any) -> None:
    settings.ALKSTORE = {"DOORBELL": False, "NOTIFY": False}
    assert type(chosen()) is {"sqlite": DataVersion, "postgresql": Polling}[connection.vendor]
    reason = {
        "sqlite": 'PRAGMA data_version alone (ALKSTORE["DOORBELL"] is False)',
        "postgresql": 'polling alone (ALKSTORE["NOTIFY"] is False)',
    }
    assert f"What wakes idle workers: {reason[connection.vendor]}.\n" in status()


@pytest.mark.only("postgresql")
def test_a_transaction_pooler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    assert type(chosen()) is Polling
    assert "polling alone (DISABLE_SERVER_SIDE_CURSORS is True" in status()


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="b", dir="/tmp") as path:
        yield Path(path)


@pytest.mark.only("sqlite")
def test_no_directory_for_a_bell(settings: Any) -> None:
    settings.ALKSTORE = {"SOCKET_DIR": "/tmp/" + "x" * 100}
    assert type(chosen()) is DataVersion
    assert "the path is too long" in status()


@pytest.mark.only("sqlite")
def test_another_directory_when_the_first_will_not_do(short: Path) -> None:
    (short / "a file").touch()
    bell = hang(connection.settings_dict["NAME"], [str(short / "a file" / "bells"), str(short / "bells")])
    assert bell is not None and bell.directory == str(short / "bells")
    bells.ring([str(short / "bells")])
    assert bell.heard() and not bell.heard()
    bell.close()
    assert sorted(os.listdir(short)) == ["a file"]
    assert hang(connection.settings_dict["NAME"], [str(short / "a file" / "bells")]) is None


@pytest.mark.only("sqlite")
@pytest.mark.parametrize(("rights", "directory"), [(0o600, 0o700), (0o640, 0o750), (0o664, 0o775)])
def test_who_may_write_the_file_may_ring(short: Path, rights: int, directory: int) -> None:
    file = short / "db"
    file.touch()
    file.chmod(rights)
    bell = Doorbell(str(file), str(short / "bells"))
    (path,) = (short / "bells").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == rights
    assert stat.S_IMODE((short / "bells").stat().st_mode) == directory
    bell.close()


@pytest.mark.only("sqlite", "postgresql")
def test_what_is_heard(queue: Queue) -> None:
    """What was committed after ``arm`` by whoever, and not what came before."""
    wake = choose("default", True, None)
    try:
        for _ in range(2):
            wake.arm()
            assert not wake.heard()
            queue.enqueue(1)
            assert wake.heard()
            wake.arm()
            assert not wake.heard()
    finally:
        wake.close()


@pytest.mark.only("postgresql")
def test_nothing_stays_behind_in_a_session(queue: Queue) -> None:
    wake = choose("default", True, None)
    wake.arm()
    wake.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_listening_channels()")
        assert cursor.fetchone() == (0,)


@pytest.mark.only("sqlite")
def test_own_commits_do_not_count(queue: Queue) -> None:
    before = looks.data_version("default")
    queue.enqueue(1)
    assert looks.data_version("default") == before
