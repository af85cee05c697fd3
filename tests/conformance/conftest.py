from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tests.conformance import source

sys.path.insert(0, str(source.provide()))

# One Django is enough for what is about another package.
collect_ignore = [] if find_spec("django_tasks_db") else ["test_alkimport.py", "test_django_tasks_db.py"]

left_out = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Tests of others that cannot be about us are left out, and told of: they are not skipped."""
    found = {item: reason for item in items if (reason := why_left_out(item))}
    config.hook.pytest_deselected(items=list(found))
    items[:] = [item for item in items if item not in found]
    config.stash[left_out] = [
        f"{item.cls.__name__}.{item.originalname}: {reason}" for item, reason in found.items()
    ]


def why_left_out(item: Any) -> str | None:
    reasons = getattr(item.cls, "left_out", {})
    if unknown := [name for name in reasons if not hasattr(item.cls, name)]:
        raise pytest.UsageError(f"{item.cls.__name__} leaves out {unknown[0]}, which is not there any more")
    return reasons.get(item.originalname)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in sorted(config.stash.get(left_out, [])):
        terminalreporter.write_line(f"left out: {line}")
