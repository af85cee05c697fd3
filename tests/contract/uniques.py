"""Unique tasks of the contract tests."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.contract import tasks

each_lasting = pytest.mark.parametrize("lasting", ["finished", "queued", 600])


def unique(key: Any = True, task: Any = tasks.send, **options: Any) -> Any:
    """The task with a key, in a queue of its own."""
    return task.using(queue_name=factories.queue().name, unique=key, **options)


def is_free(task: Any, holder: Any) -> bool:
    """Whether the key is free for the call of ``holder``; its job must be the answer otherwise."""
    found = task.enqueue(*holder.args, **holder.kwargs)
    assert found.created == (found.id != holder.id)
    return bool(found.created)
