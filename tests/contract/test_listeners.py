"""What listeners cost, how they are told, and what happens to those that are slow, or in trouble."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import OperationalError, connection, connections

from alkstore_django import notifications
from alkstore_django.exceptions import FellBehind
from alkstore_django.models import NotificationManager
from alkstore_django.notifications import listen, notify, notify_many
from alkstore_django.runtime import ear, subscriptions
from alkstore_django.runtime.wake.data_version import DataVersion
from alkstore_django.runtime.wake.notices import Notices
from tests.contract.listening import PATIENCE, ears, left, no_ear_stays, reads, take
from tests.e2e.test_outage import end_sessions
from tests.processes import wait_until

__all__ = ["no_ear_stays"]

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "other"]),
    pytest.mark.usefixtures("no_ear_stays"),
]


# -- what it costs ------------------------------------------------------------------------------------


def test_many_threads_share_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = [listen("a", timeout=PATIENCE) for _ in range(30)]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda each=each: found.append(next(each).payload)) for each in listeners
    ]
    for thread in threads:
        thread.start()
    with reads(monkeypatch) as counts:
        notify("a", 1)
        for thread in threads:
            thread.join()
    assert found == [1] * 30
    assert len(ears()) == 1
    assert [count for count in counts if count] == [1]
    for each in listeners:
        each.close()


def test_an_idle_listener_hardly_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On MariaDB 4 times a second, elsewhere when it is told."""
    with listen("a", timeout=2) as heard:
        time.sleep(0.5)
        with reads(monkeypatch) as counts:
            assert left(heard) == []
    assert len(counts) <= (12 if connection.vendor == "mysql" else 3)


@pytest.mark.only("sqlite", "postgresql")
def test_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not only find it when it asks the next time."""
    for kind in (DataVersion, Notices):
        monkeypatch.setattr(kind, "interval", 1000.0)
    with listen("a", timeout=PATIENCE, interval=1000) as heard:
        for number in range(20):
            notify("a", number)
            assert next(heard).payload == number


@pytest.mark.only("sqlite", "postgresql")
@pytest.mark.parametrize("alkstore", [{"NOTIFY": False, "DOORBELL": False}])
def test_it_is_not_told(settings: Any, alkstore: dict[str, Any]) -> None:
    settings.ALKSTORE = alkstore
    with listen("a", timeout=PATIENCE) as heard:
        notify("a", 1)
        assert next(heard).payload == 1


@pytest.mark.only("postgresql")
def test_behind_a_pooler(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    with listen("a", timeout=PATIENCE) as heard:
        notify("a", 1)
        assert next(heard).payload == 1


# -- slow listeners -----------------------------------------------------------------------------------


def test_a_slow_listener_keeps_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """And gets everything in the end; a quick one beside it is not held up."""
    monkeypatch.setattr(subscriptions, "ROOM", 10)
    with listen("a", timeout=PATIENCE) as slow, listen("a", timeout=PATIENCE) as quick:
        notify_many("a", range(100))
        assert take(100, quick) == [*range(100)]
        notify_many("a", range(100, 120))
        assert take(20, quick) == [*range(100, 120)]
        assert len(slow._source._subscription._messages) == 10  # type: ignore[attr-defined]
        assert take(120, slow) == [*range(120)]
        notify("a", "next")
        assert (take(1, slow), take(1, quick)) == (["next"], ["next"])


def test_a_slow_listener_misses_what_was_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "ROOM", 10)
    with listen("a", timeout=PATIENCE) as slow, listen("a", timeout=PATIENCE) as quick:
        notify_many("a", range(30))
        assert take(30, quick) == [*range(30)]
        notifications.prune(max_keep=5)
        assert take(15, slow) == [*range(10), *range(25, 30)]


def test_a_listener_that_falls_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "ROOM", 10)
    monkeypatch.setattr(subscriptions, "FARTHEST", 20)
    with listen("a", timeout=PATIENCE) as slow, listen("a", timeout=PATIENCE) as quick:
        for start in range(0, 50, 10):
            notify_many("a", range(start, start + 10))
            assert take(10, quick) == [*range(start, start + 10)]
        assert take(10, slow) == [*range(10)]
        with pytest.raises(FellBehind, match="'a' is 20 notifications behind"):
            next(slow)
        assert left(slow) == []
        notify("a", 50)
        assert take(1, quick) == [50]


# -- trouble ------------------------------------------------------------------------------------------


def test_no_database_to_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> int:
        raise OperationalError("too many connections")

    with monkeypatch.context() as patched:
        patched.setattr(NotificationManager, "newest_id", refuse)
        for _ in range(2):
            with pytest.raises(OperationalError, match="too many connections"):
                listen("a")
    with listen("a") as heard:
        notify("a", 1)
        assert next(heard).payload == 1


def test_trouble_while_it_listens(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """One line for an outage, and nothing is lost."""
    after, failures = NotificationManager.after, iter(range(3))

    def fail(self: Any, *args: Any) -> Any:
        if next(failures, None) is not None:
            raise OperationalError("it is away")
        return after(self, *args)

    with caplog.at_level("INFO", "alkstore_django.notifications"), listen("a", interval=0.05) as heard:
        monkeypatch.setattr(NotificationManager, "after", fail)
        notify_many("a", [1, 2])
        assert take(2, heard) == [1, 2]
        wait_until(lambda: "again" in caplog.text.rpartition("away")[2], what="it is back")
    lines = [each.message for each in caplog.records if each.name == "alkstore_django.notifications"]
    assert lines[0] == "Listeners cannot reach the database, and try again until they can: it is away"
    assert lines[1].startswith("Listeners reach the database again after ")
    assert len(lines) == 2


def test_an_error_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches whoever listens."""

    def fail(self: Any, *args: Any) -> Any:
        raise ZeroDivisionError("a bug")

    with listen("a", interval=0.05) as heard:
        monkeypatch.setattr(NotificationManager, "after", fail)
        notify("a", 1)
        with pytest.raises(ZeroDivisionError, match="a bug"):
            next(heard)


def test_in_a_fork() -> None:
    with listen("a", timeout=PATIENCE) as heard:
        ear.ears["default"]._pid = -1
        with pytest.raises(RuntimeError, match="the process that has forked"):
            next(heard)
        with listen("a", timeout=PATIENCE) as another:
            notify("a", 1)
            assert next(another).payload == 1


@pytest.mark.only("postgresql", "mysql")
def test_its_session_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level("INFO", "alkstore_django.notifications"),
        listen("a", timeout=PATIENCE, interval=0.05) as heard,
    ):
        for number in range(3):
            end_sessions()
            notify("a", number)
            assert next(heard).payload == number
            notify("a", "more")
            assert next(heard).payload == "more"
    assert caplog.text.count("Listeners cannot reach the database") == 3
    assert caplog.text.count("Listeners reach the database again") == 3
