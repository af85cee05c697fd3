"""The system check that finds outboxes which no transaction of their app can hold."""

from __future__ import annotations

from typing import Any

import pytest

from alkstore_django import registry
from alkstore_django.outbox import outbox
from alkstore_django.outbox_checks import check_outboxes


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})


def declare(module: str, **options: Any) -> None:
    def deliver(event: Any) -> None: ...

    deliver.__module__ = module
    outbox("orders", **options)(deliver)


def test_w008_another_database_than_that_of_the_models() -> None:
    declare("django.contrib.auth.outbox", using="other")
    (message,) = check_outboxes()
    assert message.id == "alkstore_django.W008"
    assert "'orders' is in database 'other'" in message.msg and "of 'auth' in 'default'" in message.msg
    assert "alkrelay --database default" in str(message.hint)


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("django.contrib.auth.outbox", {}),
        ("django.contrib.auth.outbox", {"using": "default"}),
        ("django.contrib.messages.outbox", {"using": "other"}),  # an app without models
        ("somewhere.else", {"using": "other"}),
    ],
)
def test_nothing_to_say(module: str, options: dict[str, Any]) -> None:
    declare(module, **options)
    assert check_outboxes() == []
