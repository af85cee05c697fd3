"""The server ends a session of a worker that does nothing in a transaction: its locks hold up others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from alkstore_django.health import limit_idling
from tests.factories import ask

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql", "mysql")]

SET = {
    "postgresql": "SET idle_in_transaction_session_timeout = '{}s'",
    "mysql": "SET SESSION idle_transaction_timeout = {}",
}
SHOW = {
    "postgresql": "SELECT setting::int / 1000 FROM pg_settings "
    "WHERE name = 'idle_in_transaction_session_timeout'",
    "mysql": "SELECT @@idle_transaction_timeout",
}


def limit() -> int:
    ((found,),) = ask(SHOW[connection.vendor])
    return int(found)


@pytest.fixture(autouse=True)
def _a_session_of_its_own() -> Iterator[None]:
    connection.close()
    yield
    connection.close()


@pytest.mark.parametrize(("before", "after"), [(0, 10), (3, 3), (60, 60)])
def test_a_limit_of_the_project_stays(before: int, after: int) -> None:
    ask(SET[connection.vendor].format(before))
    limit_idling("default")
    assert limit() == after


@pytest.mark.parametrize("shared", [{"DISABLE_SERVER_SIDE_CURSORS": True}, {"OPTIONS": {"pool": True}}])
def test_not_where_others_may_get_the_session(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(SET[connection.vendor].format(0))
    with monkeypatch.context() as patch:
        for name, value in shared.items():
            patch.setitem(connection.settings_dict, name, value)
        limit_idling("default")
    assert limit() == 0
