"""The options of unique tasks, and what the payload says of a key."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from alkstore_django import keys
from alkstore_django.envelopes import Envelope
from alkstore_django.keys import Key
from alkstore_django.tasks import task


def a_function(value: int = 0) -> int:
    return value


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (None, "finished", "existing")),
        ({"unique": True}, (True, "finished", "existing")),
        ({"unique": False}, (None, "finished", "existing")),
        ({"unique": None}, (None, "finished", "existing")),
        ({"unique": "k", "unique_for": "queued"}, ("k", "queued", "existing")),
        ({"unique": "k", "unique_for": 1}, ("k", 1, "existing")),
        ({"unique": "k", "unique_for": 1.1, "on_conflict": "ignore"}, ("k", 2, "ignore")),
        ({"unique_for": timedelta(minutes=1), "on_conflict": "replace"}, (None, 60, "replace")),
    ],
    ids=str,
)
def test_options(options: Any, expected: Any) -> None:
    for made in (task(**options)(a_function), task(a_function).using(**options)):
        assert (made.unique, made.unique_for, made.on_conflict) == expected
        assert hash(made) == hash(made.using())


def test_a_copy_can_be_without_a_key() -> None:
    made = task(unique=True)(a_function)
    assert made.using().unique is True
    assert made.using(unique="k").unique == "k"
    assert made.using(unique=False).unique is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"unique": ""}, ValueError, "unique must not be an empty string"),
        ({"unique": 1}, TypeError, "unique must be a key"),
        ({"unique": b"k"}, TypeError, "unique must be a key"),
        ({"unique": ["a"]}, TypeError, "unique must be a key"),
        ({"unique": str}, TypeError, "unique must be a key"),
        ({"unique": ascii}, TypeError, "unique must be a key"),
        ({"unique_for": "forever"}, ValueError, "unique_for must be 'finished', 'queued' or seconds"),
        ({"unique_for": ""}, ValueError, "unique_for must be"),
        ({"unique_for": 0}, ValueError, "unique_for"),
        ({"unique_for": -1}, ValueError, "unique_for"),
        ({"unique_for": True}, TypeError, "unique_for"),
        ({"unique_for": float("nan")}, ValueError, "unique_for"),
        ({"unique_for": 10**30}, ValueError, "unique_for"),
        ({"unique_for": timedelta(0)}, ValueError, "unique_for"),
        ({"on_conflict": "raise"}, ValueError, "on_conflict must be 'existing', 'ignore', 'replace'"),
        ({"on_conflict": True}, TypeError, "on_conflict must be a string"),
    ],
    ids=str,
)
def test_bad_options(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        task(**options)(a_function)
    with pytest.raises(error, match=message):
        task(a_function).using(**options)


def envelope(said: Any) -> Envelope:
    return Envelope("a.b", [], {}, {"unique": said} if said is not None else {})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, None),
        ({"digest": "d"}, Key("d", "finished")),
        ({"digest": "d", "for": "queued"}, Key("d", "queued")),
        ({"digest": "d", "for": 5}, Key("d", 5)),
        ({"digest": "d", "for": 0}, None),
        ({"digest": "d", "for": True}, None),
        ({"digest": "d", "for": []}, None),
        ({"digest": "d", "for": 1.5}, None),
        ({"digest": 1}, None),
        ({}, None),
        ("d", None),
        ([], None),
    ],
    ids=str,
)
def test_what_other_programs_may_have_written_is_no_key(said: Any, expected: Any) -> None:
    assert keys.of_envelope(envelope(said)) == expected
    assert keys.options(envelope(said))["unique"] is None
    assert keys.kept(envelope(said), 3) == max(3, (expected and expected.seconds) or 0)


@pytest.mark.parametrize("key", [True, "k"])
def test_what_is_stored_is_read_again(key: Any) -> None:
    for options in ({}, {"unique_for": "queued", "on_conflict": "replace"}, {"unique_for": 9}):
        made = task(a_function).using(unique=key, **options)
        given = Envelope("a.b", [1], {})
        given.extra[keys.UNIQUE] = keys.stored(made, given)
        assert keys.options(given) == {
            "unique": key,
            "unique_for": made.unique_for,
            "on_conflict": made.on_conflict,
        }
        assert len(keys.digest(made, given)) == 64


def test_a_key_is_not_that_of_an_argument() -> None:
    """Digests of keys, of arguments and of tasks are told apart."""
    by_key, by_arguments = (task(a_function).using(unique=key) for key in ('{"value":"k"}', True))
    digests = {
        keys.digest(by_key, Envelope("a", ["k"], {})),
        keys.digest(by_arguments, Envelope("a", ["k"], {})),
        keys.digest(by_arguments, Envelope("b", ["k"], {})),
        keys.digest(by_arguments, Envelope("a", [], {})),
        keys.digest(by_arguments, Envelope("a", [1, 2], {})),
    }
    assert len(digests) == 5
