from __future__ import annotations

import json
from typing import Any

import pytest

from alkstore_django.envelopes import Envelope, arguments, task_name, unseal
from alkstore_django.exceptions import UndecodablePayload
from alkstore_django.payloads import MAX_DEPTH, encode
from alkstore_django.sql.tables import TASK_PREFIX


def test_it_is_that_of_honker() -> None:
    text = Envelope("shop.send", [1, "é"], {"y": 2}).seal()
    assert json.loads(text) == {
        "__honker_task__": {"task": "shop.send", "args": [1, "é"], "kwargs": {"y": 2}}
    }
    assert text.startswith(TASK_PREFIX)


@pytest.mark.parametrize("extra", [{}, {"backend": "other"}])
def test_the_deepest_arguments_are_those_that_fit_an_envelope(extra: Any) -> None:
    value: Any = "leaf"
    for _ in range(MAX_DEPTH - 3):
        value = [value]
    envelope = Envelope("a.b", *arguments((value,), {}), extra)
    assert unseal(envelope.seal()) == envelope
    assert encode(json.loads(envelope.seal())) == envelope.seal()
    for args, kwargs in (([value],), {}), ((), {"x": [value]}):
        with pytest.raises(ValueError, match=r"^calls\[7\]\.k?w?args is nested too deeply"):
            arguments(args, kwargs, "calls[7].")


def test_our_keys_stand_beside_it() -> None:
    envelope = Envelope("shop.send", [], {}, {"backend": "other"})
    assert json.loads(envelope.seal())["alkstore"] == {"backend": "other"}
    assert envelope.seal().startswith(TASK_PREFIX)
    assert unseal(envelope.seal()) == unseal(envelope.seal().encode()) == envelope


@pytest.mark.parametrize(
    "inner",
    ['{"task": "a.b"}', '{"task":"a.b","args":[],"kwargs":{}}', '{"kwargs": {}, "task": "a.b", "id": 7}'],
)
def test_what_other_bindings_write(inner: str) -> None:
    for text in (f'{{"__honker_task__": {inner}}}', f'{{"__honker_task__":{inner},"trace":1}}'):
        assert unseal(text) == Envelope("a.b", [], {})
        assert text.startswith(TASK_PREFIX)


@pytest.mark.parametrize("extra", [1, None, [], "x"])
def test_a_stranger_may_have_our_key(extra: Any) -> None:
    text = json.dumps({"__honker_task__": {"task": "a.b"}, "alkstore": extra})
    assert unseal(text) == Envelope("a.b", [], {})


@pytest.mark.parametrize(
    "payload",
    [
        None,
        1,
        [],
        {},
        {"task": "a.b"},
        {"__honker_task__": None},
        {"__honker_task__": []},
        {"__honker_task__": "a.b"},
        {"__honker_task__": {}},
        {"__honker_task__": {"task": None}},
        {"__honker_task__": {"task": ["a.b"]}},
        {"__honker_task__": {"task": "a.b", "args": {}}},
        {"__honker_task__": {"task": "a.b", "args": "x"}},
        {"__honker_task__": {"task": "a.b", "kwargs": []}},
        {"__honker_task__": {"task": "a.b", "kwargs": None}},
    ],
)
def test_what_is_no_task(payload: Any) -> None:
    with pytest.raises(UndecodablePayload):
        unseal(json.dumps(payload))
    assert task_name(json.dumps(payload)) == ""


def test_the_name_of_a_task() -> None:
    assert task_name(Envelope("a.b", [], {}).seal()) == "a.b"
    assert task_name(b"\xff") == ""
