"""The pytest plugin, loaded wherever this package is installed: fixtures, and no import of Django."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def alkstore_immediate() -> Iterator[None]:
    """Each task runs within its enqueue (``alkstore_django.testing.immediate``)."""
    from .modes import immediate

    with immediate():
        yield


@pytest.fixture
def alkstore_drain() -> Iterator[Callable[..., Any]]:
    """``drain``: until it is called, jobs stay in the tables (``alkstore_django.testing.manual``)."""
    from .modes import manual

    mode = manual()
    drain: Callable[..., Any] = mode.enable()
    yield drain
    mode.disable()


@pytest.fixture
def alkstore_assert_enqueued() -> Callable[..., Any]:
    """``alkstore_django.testing.assert_enqueued``."""
    from .assertions import assert_enqueued

    return assert_enqueued


@pytest.fixture
def alkstore_assert_not_enqueued() -> Callable[..., Any]:
    """``alkstore_django.testing.assert_not_enqueued``."""
    from .assertions import assert_not_enqueued

    return assert_not_enqueued
