"""``manage.py alklock``: what it shows, and what it takes away."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from alkstore_django import locks
from alkstore_django.locks import lock
from alkstore_django.models import Lock

pytestmark = pytest.mark.django_db(databases=["default", "other"])


def alklock(*arguments: str) -> str:
    output = StringIO()
    call_command("alklock", *arguments, stdout=output)
    return output.getvalue()


@pytest.fixture
def two() -> None:
    Lock.objects.create(name="b", owner="web-3", expires_at=4_102_444_800)
    Lock.objects.create(name="a", owner="\x1b[31m", expires_at=2**62)
    Lock.objects.create(name="over", owner="web-3", expires_at=1)


def test_list(two: Any) -> None:
    head, first, second = alklock("list").splitlines()
    assert head.split() == ["lock", "owner", "until"]
    assert first.split() == ["a", r"\x1b[31m", "-"]
    assert second.split() == ["b", "web-3", "2100-01-01", "00:00:00+00:00"]
    assert alklock("list", "--database", "other") == "No lock is held.\n"


def test_json(two: Any) -> None:
    assert json.loads(alklock("list", "--json")) == [
        {"name": "a", "owner": "\x1b[31m", "expires_at": None},
        {"name": "b", "owner": "web-3", "expires_at": "2100-01-01T00:00:00+00:00"},
    ]
    assert json.loads(alklock("list", "--json", "--database", "other")) == []


def test_release(two: Any) -> None:
    assert alklock("release", "a", "b") == "Lock a is released.\nLock b is released.\n"
    assert locks.held() == []
    with pytest.raises(CommandError, match=r"^Not held: over, nothing\.$"):
        alklock("release", "over", "nothing")


def test_only_from_an_owner(two: Any) -> None:
    with pytest.raises(CommandError, match=r"^Not held by web-4: b\.$"):
        alklock("release", "b", "--owner", "web-4")
    assert alklock("release", "b", "--owner", "web-3") == "Lock b is released.\n"


def test_another_database() -> None:
    with lock("l", using="other"):
        with pytest.raises(CommandError, match="Not held: l"):
            alklock("release", "l")
        assert alklock("release", "l", "--database", "other") == "Lock l is released.\n"
