from __future__ import annotations

import json
import sys
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from alkstore_django.exceptions import UndecodablePayload
from alkstore_django.payloads import decode, encode, normalised

Point = namedtuple("Point", "x y")


class Level(IntEnum):
    HIGH = 1


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars |= st.text(st.characters(codec=None, exclude_categories=[]))
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(values)
def test_a_round_trip_is_that_of_json(value: Any) -> None:
    text = encode(value)
    assert text.isascii()
    assert "\x00" not in text
    assert decode(text) == decode(text.encode()) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (2**70, 2**70),
        (-(2**63) - 1, -(2**63) - 1),
        (1.0, 1.0),
        ("a\x00b", "a\x00b"),
        ("\ud800", "\ud800"),
        ({"k\x00": "\udfff"}, {"k\x00": "\udfff"}),
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (OrderedDict(a=1), {"a": 1}),
        (Level.HIGH, 1),
        (mark_safe("<b>"), "<b>"),
        ({2: "a", None: "b", True: "c", 2.5: "d"}, {"2": "a", "null": "b", "true": "c", "2.5": "d"}),
        ({Level.HIGH: 1}, {"1": 1}),
        ("", ""),
        (None, None),
    ],
)
def test_what_a_reader_sees(value: Any, seen: Any) -> None:
    found = decode(encode(value))
    assert (found, type(found)) == (seen, type(seen))


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 1, tzinfo=UTC),
        date(2026, 1, 1),
        timedelta(1),
        Decimal("1.10"),
        UUID(int=1),
        {1, 2},
        frozenset([1]),
        b"bytes",
        bytearray(b"bytes"),
        gettext_lazy("Yes"),
        object(),
        int,
        lambda: 1,
        iter([1]),
        range(3),
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_hold(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Unsupported type: .* at payload\['to'\]\[1\]; JSON cannot hold it"):
        encode({"to": ["x", value]})


def test_a_model_instance_comes_with_a_hint() -> None:
    with pytest.raises(TypeError, match=r"at payload\['user'\].*pass its primary key"):
        encode({"user": User()})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_nan_and_no_infinities(value: float) -> None:
    with pytest.raises(ValueError, match=r"payload\['x'\]\[0\] is .*: JSON has no NaN"):
        encode({"x": [value]})
    with pytest.raises(ValueError, match=r"a key of payload\['x'\] is .*: JSON has no NaN"):
        encode({"x": {value: 1}})


@pytest.mark.parametrize(
    "value", [{1: "a", "1": "b"}, {None: 1, "null": 2}, {True: 1, "true": 2}, {1.5: 1, "1.5": 2}]
)
def test_keys_that_collide(value: Any) -> None:
    with pytest.raises(ValueError, match=r"payload\['in'\] has two keys that are '.*' in JSON"):
        encode({"in": value})


@pytest.mark.parametrize("key", [(1, 2), b"key", frozenset(), date(2026, 1, 1)])
def test_keys_that_are_no_text(key: Any) -> None:
    with pytest.raises(TypeError, match="as a key of payload; JSON keys are strings"):
        encode({key: 1})


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_endless_nesting() -> None:
    ring: list[Any] = []
    ring.append(ring)
    for value in (ring, {"a": ring}, nested(sys.getrecursionlimit() * 2)):
        with pytest.raises(ValueError, match="payload is nested too deeply, or holds itself"):
            encode(value)
        with pytest.raises(ValueError, match="args is nested too deeply, or holds itself"):
            normalised(value, "args")


def test_what_was_written_can_be_read_from_deep_within_a_program() -> None:
    depth = max(depth for depth in range(10, 2000, 10) if _is_accepted(depth))

    def deeper(frames: int) -> Any:
        return deeper(frames - 1) if frames else decode(encode(nested(depth)))

    assert deeper(400) == nested(depth)


def _is_accepted(depth: int) -> bool:
    try:
        return bool(encode(nested(depth)))
    except ValueError:
        return False


def test_numbers_past_the_limit_of_digits() -> None:
    with pytest.raises(ValueError, match="digits"):
        encode(10**5000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        '{"a":',
        "'a'",
        b"\xff\xfe",
        b'"\xc3"',
        "1" * 5000,
        "[" * 100_000,
        "\ufeff1",
        "{}{}",
        "nul",
    ],
    ids=lambda text: str(text[:10]),
)
def test_what_others_wrote_may_be_anything(text: Any) -> None:
    with pytest.raises(UndecodablePayload, match="the payload is not JSON text"):
        decode(text)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (b"bytes", "bytes"),
        ((1, b"x"), [1, "x"]),
        (range(3), [0, 1, 2]),
        ({b"k": (1,)}, {"k": [1]}),
        ({1: 1, None: 2}, {"1": 1, "null": 2}),
        (True, True),
        (2**70, 2**70),
    ],
)
def test_normalised_follows_django(value: Any, seen: Any) -> None:
    found = normalised(value, "args")
    assert (found, type(found)) == (seen, type(seen))
    assert found == decode(encode(found))


@given(values)
def test_normalised_is_what_a_reader_sees(value: Any) -> None:
    assert normalised(value, "args") == json.loads(json.dumps(value)) or _has_surrogate_pairs(value)


def _has_surrogate_pairs(value: Any) -> bool:
    """Two lone surrogates that make a pair are one character after JSON: a rule of JSON itself."""
    return json.loads(json.dumps(value)) != value


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (b"\xff", ValueError, r"at args\[0\] is not UTF-8"),
        ({b"\xff": 1}, ValueError, "utf-8"),
        ({"a": {1}}, TypeError, r"Unsupported type: <class 'set'> at args\[0\]\['a'\]"),
        (float("nan"), ValueError, r"args\[0\] is nan"),
        ({1: 1, b"1": 2}, ValueError, r"args\[0\] has two keys"),
        ({"k": 1, b"k": 2}, ValueError, r"args\[0\] has two keys"),
        (Decimal(1), TypeError, "Unsupported type"),
        (gettext_lazy("Yes"), TypeError, "Unsupported type"),
    ],
)
def test_what_cannot_be_normalised(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        normalised([value], "args")
