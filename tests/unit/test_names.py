from __future__ import annotations

from typing import Any

import pytest

from alkstore_django.names import MAX_LENGTH, checked
from alkstore_django.queues import Queue


@pytest.mark.parametrize(
    "name", ["a", "_outbox:mail", "två ord", "日本", "🙂" * MAX_LENGTH, "a\u200bb", "%(id)s", "'; --", "a\\"]
)
def test_what_may_be_a_name(name: str) -> None:
    assert checked("queue", name) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "has 1 to 191 characters, this has 0"),
        ("x" * (MAX_LENGTH + 1), "this has 192"),
        ("🙂" * (MAX_LENGTH + 1), "this has 192"),
        (" a", "white space"),
        ("a ", "white space"),
        ("a\u00a0", "white space"),
        ("\u2003a", "white space"),
        ("   ", "white space"),
        ("a\x00b", r"control character '\\x00'"),
        ("a\nb", "control character"),
        ("a\tb", "control character"),
        ("a\x85b", "control character"),
        ("a\x7fb", "control character"),
        ("a\ud800b", "control character"),
    ],
)
def test_what_may_not(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked("queue", name)


@pytest.mark.parametrize("name", [None, 1, b"a", ["a"], True])
def test_a_name_is_a_string(name: Any) -> None:
    with pytest.raises(TypeError, match="A lock name must be a string, not"):
        checked("lock", name)


def test_a_queue_checks_its_name() -> None:
    with pytest.raises(ValueError, match="The queue name 'mail '"):
        Queue("mail ")
