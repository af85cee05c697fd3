from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alkstore_django.exceptions import WorkerLost
from alkstore_django.failures import MAX_ERROR, MAX_TRACEBACK, from_exception, of, storable


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


def test_a_raised_exception() -> None:
    failure = from_exception(raised(KeyError("missing")))
    assert (failure.class_path, failure.error) == ("builtins.KeyError", "'missing'")
    assert failure.traceback.startswith("Traceback (most recent call last)")
    assert failure.traceback.endswith("KeyError: 'missing'\n")
    assert failure.summary == f"'missing'\n{failure.traceback}"


def test_causes_are_told() -> None:
    def chain() -> None:
        try:
            raise ValueError("first")
        except ValueError as error:
            raise RuntimeError("second") from error

    with pytest.raises(RuntimeError) as caught:
        chain()
    assert "ValueError: first" in from_exception(caught.value).traceback


def test_a_failure_that_nothing_raised() -> None:
    failure = of(WorkerLost, "gone")
    assert failure.class_path == "alkstore_django.exceptions.WorkerLost"
    assert (failure.summary, failure.traceback) == ("gone", "")


def test_an_exception_without_a_message() -> None:
    failure = from_exception(raised(SystemExit()))
    assert failure.error == ""
    assert failure.summary.startswith("builtins.SystemExit\nTraceback")


class Unwilling(Exception):
    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(f"no {name} for you")


def test_an_exception_that_refuses_to_be_looked_at() -> None:
    failure = from_exception(Unwilling("x"))
    assert failure.class_path.endswith("test_failures.Unwilling")
    assert "could not be read" in failure.traceback or "Unwilling" in failure.traceback


def test_an_exception_whose_message_cannot_be_read() -> None:
    failure = from_exception(raised(Unreadable()))
    assert failure.error == "(its message could not be read: RuntimeError)"
    assert failure.class_path.endswith("test_failures.Unreadable")


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "a\udfffb\x00"])
def test_nul_and_lone_surrogates_become_text(text: str) -> None:
    failure = from_exception(raised(ValueError(text)))
    for stored in (failure.error, failure.traceback, failure.summary):
        assert "\x00" not in stored
        stored.encode()
    assert failure.error.startswith("a\\")


def test_sizes_are_bounded() -> None:
    failure = from_exception(raised(ValueError("x" * 10_000_000)))
    assert len(failure.error) <= MAX_ERROR + 10
    assert len(failure.traceback) <= MAX_TRACEBACK + 10
    assert failure.error.startswith("xxx")
    assert failure.error.endswith("[cut]")


def test_a_traceback_keeps_its_end() -> None:
    failure = from_exception(raised(ValueError("x" * MAX_TRACEBACK + "the end")))
    assert failure.traceback.startswith("[cut]")
    assert failure.traceback.endswith("the end\n")


def test_endless_recursion() -> None:
    def forever() -> None:
        forever()

    with pytest.raises(RecursionError) as caught:
        forever()
    failure = from_exception(caught.value)
    assert failure.class_path == "builtins.RecursionError"
    assert "repeated" in failure.traceback


def test_a_class_path_fits_its_column() -> None:
    endless = type("E" * 500, (Exception,), {"__module__": "m\x00\ud800"})
    for failure in (from_exception(endless("x")), of(endless, "x")):
        assert len(failure.class_path) <= 255
        assert "\x00" not in failure.class_path
        failure.class_path.encode()


@given(st.text(st.characters(codec=None, exclude_categories=[])), st.integers(1, 50), st.booleans())
def test_storable_text_can_be_stored(text: str, limit: int, keep_end: bool) -> None:
    stored = storable(text, limit, keep_end=keep_end)
    assert "\x00" not in stored
    assert len(stored) <= limit + len("[cut]\n")
    stored.encode()
