"""Payloads and results as JSON text: strict when we write, forgiving when we read.

Written text is ASCII (``\\uXXXX`` escapes), so NUL and lone surrogates survive every database
(PostgreSQL refuses a raw NUL in text). What a reader sees equals ``json.loads(json.dumps(value))``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .exceptions import UndecodablePayload

MAX_DEPTH = 200
"""Levels of lists and dicts in each other: what is written can be read from deep within a program."""

_decoder = json.JSONDecoder()
_encoder = json.JSONEncoder(allow_nan=False, ensure_ascii=True, separators=(",", ":"))


def encode(value: object, root: str = "payload") -> str:
    """JSON text of ``value``; ``root`` is what the message calls it.

    Raises ``TypeError`` for what JSON cannot hold and ``ValueError`` for NaN, infinities, keys that
    collide as text, and nesting past ``MAX_DEPTH``; both name the path to the culprit.
    """
    if value is None:  # what most tasks return
        return "null"
    try:
        _verify(value, root)
    except RecursionError:
        raise _too_deep(root) from None
    return written(value, root)


def written(value: object, root: str = "payload") -> str:
    """``encode`` for what was verified before, or is ``normalised``."""
    try:
        return _encoder.encode(value)
    except RecursionError:
        raise _too_deep(root) from None


def decode(text: str | bytes) -> Any:
    """The value of stored JSON text. Raises ``UndecodablePayload`` for anything else."""
    try:
        return _decoder.decode(text.decode() if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        # ValueError covers broken JSON, broken UTF-8 and integers past Python's digit limit.
        raise UndecodablePayload(f"the payload is not JSON text: {error}") from error


def normalised(value: object, root: str, depth: int = 0) -> Any:
    """``value`` in JSON's own types, by the rules of ``django.tasks`` (bytes are read as UTF-8,
    any sequence is a list, any mapping a dict), with our errors: they name the path. ``depth`` is how many
    levels there are around it."""
    try:
        return _normalise(value, root, depth)
    except RecursionError:
        raise _too_deep(root) from None


def _normalise(value: object, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    match value:
        case None | str() | int():
            return value
        case float():
            _verify(value, path)
            return value
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise ValueError(f"Unsupported value: {type(value)} at {path} is not UTF-8 text.") from None
        case Mapping():
            keys = [key.decode() if isinstance(key, bytes) else key for key in value]
            _verify_keys(keys, path)
            return {
                _key_text(key): _normalise(value[given], f"{path}[{given!r}]", depth + 1)
                for key, given in zip(keys, value, strict=True)
            }
        case Sequence():
            return [_normalise(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    raise _unsupported(value, path)


def _verify(value: object, path: str, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise RecursionError
    if value is None or isinstance(value, str | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{path} is {value!r}: JSON has no NaN and no infinities.")
    elif isinstance(value, dict):
        _verify_keys(value, path)
        for key, item in value.items():
            _verify(item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _verify(item, f"{path}[{index}]", depth + 1)
    else:
        raise _unsupported(value, path)


def _verify_keys(keys: Collection[Any], path: str) -> None:
    if isinstance(keys, dict) and all(type(key) is str for key in keys):
        return
    seen: set[str] = set()
    for key in keys:
        text = _key_text(key, path)
        if text in seen:
            raise ValueError(f"{path} has two keys that are {text!r} in JSON; one would be lost.")
        seen.add(text)


def _key_text(key: object, path: str = "") -> str:
    """The text that ``json.dumps`` makes of a key."""
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool | int):
        return _encoder.encode(key)
    if isinstance(key, float):
        _verify(key, f"a key of {path}")
        return _encoder.encode(key)
    raise TypeError(f"Unsupported type: {type(key)} as a key of {path}; JSON keys are strings.")


def _too_deep(root: str) -> ValueError:
    return ValueError(f"{root} is nested too deeply, or holds itself.")


def _unsupported(value: object, path: str) -> TypeError:
    hint = "pass its primary key" if hasattr(value, "pk") else "pass a string or a number that says it"
    return TypeError(f"Unsupported type: {type(value)} at {path}; JSON cannot hold it: {hint}.")
