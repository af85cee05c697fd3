from __future__ import annotations

import inspect
from datetime import timedelta

import pytest

from alkstore_django import exceptions
from alkstore_django.exceptions import AlkstoreError, Retry

ALL = [each for _, each in inspect.getmembers(exceptions, inspect.isclass) if issubclass(each, Exception)]


@pytest.mark.parametrize("exception", ALL, ids=lambda each: each.__name__)
def test_there_is_one_root(exception: type[Exception]) -> None:
    assert issubclass(exception, AlkstoreError)
    assert exception.__doc__


def test_retry_says_when() -> None:
    assert Retry().after is None
    assert str(Retry()) == "the task asked to be run again"
    assert Retry(after=timedelta(seconds=5)).after == Retry(after=5).after == 5
    assert str(Retry("busy")) == "busy"
