"""``get_logger``: lines are the project's, and so is what goes wrong with them."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from alkstore_django.logs import get_logger

logger = get_logger("alkstore_django.of_a_test")


@pytest.fixture
def broken() -> Iterator[None]:
    """A filter that raises, as one may that expects other records."""

    def check(record: logging.LogRecord) -> bool:
        raise LookupError(record.msg)

    logger.logger.addFilter(check)
    yield
    logger.logger.removeFilter(check)


def test_lines_are_as_of_any_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger.logger.name)
    logger.warning("%s of %s", 1, 2, extra={"job_id": 7})
    try:
        raise ValueError("no")
    except ValueError:
        logger.exception("it failed")
    first, second = caplog.records
    assert (first.getMessage(), first.levelname, vars(first)["job_id"]) == ("1 of 2", "WARNING", 7)
    assert second.exc_info is not None and second.exc_info[0] is ValueError
    for record in (first, second):
        assert record.funcName == "test_lines_are_as_of_any_logger" and record.pathname == __file__


def test_what_a_filter_raises_is_told_and_goes_no_further(broken: None, capsys: Any) -> None:
    logger.error("a line with %s", "values")
    told = capsys.readouterr().err
    assert told.startswith("A line of alkstore_django.of_a_test could not be logged: a line with %s")
    assert "LookupError" in told


def test_or_not_told_where_the_project_wants_it_so(
    broken: None, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logger.error("a line")
    assert capsys.readouterr().err == ""


def test_not_even_where_nothing_can_be_told(broken: None, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        logger.error("a line")
    assert sys.stderr is None
