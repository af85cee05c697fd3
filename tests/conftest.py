from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from alkstore_django.queues import Queue
from tests import factories
from tests.flushing import delete_on_postgresql, keep_what_migrate_makes
from tests.settings import DB

ALL = {"sqlite", "postgresql", "mysql"}

# How long an example takes says how busy the machine is. The rest is as hypothesis has it, here or in CI.
settings.register_profile(
    "busy machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "only(*databases): about something that only these of sqlite, postgresql, mysql have"
    )
    if hasattr(signal, "SIGHUP"):  # under nohup the workers of the tests would rightly stay, too
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests about another database: they are not skipped, there is nothing to skip."""
    elsewhere = [item for item in items if DB not in databases(item)]
    config.hook.pytest_deselected(items=elsewhere)
    items[:] = [item for item in items if DB in databases(item)]
    for item in items:
        if databases(item) != ALL:  # for .ci/contract.py
            item.user_properties.append(("only", " ".join(sorted(databases(item)))))


def databases(item: pytest.Item) -> set[str]:
    """Those that a test is about."""
    found = {"sqlite"} if "sqlite" in getattr(item, "fixturenames", ()) else ALL
    for mark in item.iter_markers("only"):
        found = found & {*mark.args}
    return found


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        keep_what_migrate_makes(patch)
        if DB == "postgresql":
            delete_on_postgresql(patch)
        yield


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """What a test does to our loggers ends with it: the next one may look for a line."""
    logger = logging.getLogger("alkstore_django")
    before = logger.level, list(logger.handlers), logger.propagate, logging.root.manager.disable
    yield
    assert (logger.level, logger.handlers, logger.propagate, logging.root.manager.disable) == before


@pytest.fixture
def queue() -> Queue:
    """A queue with the defaults, which no other test knows."""
    return factories.queue()


@pytest.fixture
def sqlite() -> None:
    """For tests about the file that is shared with honker; on other databases they are left out."""
