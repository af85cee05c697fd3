"""Django's own tests of its tasks, against our backend: every enqueue and every run is a real one."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from tasks import tasks, test_custom_backend, test_dummy_backend, test_immediate_backend, test_tasks

from alkstore_django.compat import TaskResultStatus, task_backends
from tests.in_process import OwnRows, work

RESULTS = "about a backend that cannot find results again; ours can"
DELAY = "about a backend that cannot wait for run_after; ours can"
PYTHON = "expects a text of Python 3.12"


class Ours(OwnRows):
    """``left_out``: tests that cannot be about our backend, and why. The output lists them."""

    left_out: ClassVar[dict[str, str]] = {}


class TestTasks(Ours, test_tasks.TaskTestCase):
    pass


class TestImmediate(Ours, test_immediate_backend.ImmediateBackendTestCase):
    left_out: ClassVar[dict[str, str]] = {
        "test_cannot_get_result": RESULTS,
        "test_cannot_refresh_result": RESULTS,
        "test_cannot_pass_run_after": DELAY,
    }


class TestImmediateInTransactions(Ours, test_immediate_backend.ImmediateBackendTransactionTestCase):
    pass


class TestDummy(Ours, test_dummy_backend.DummyBackendTestCase):
    """Django's tests of ``refresh`` change what the backend keeps in memory; here a worker does that."""

    def test_refresh_result(self) -> None:
        result = tasks.calculate_meaning_of_life.enqueue()
        work("default")
        self.assert_refreshed(result, result.refresh)

    async def test_refresh_result_async(self) -> None:
        result = await tasks.calculate_meaning_of_life.aenqueue()
        await sync_to_async(work)("default")
        await sync_to_async(self.assert_refreshed)(result, result.refresh)
        await result.arefresh()
        assert result.return_value == 42

    def assert_refreshed(self, result: Any, refresh: Any) -> None:
        assert result.status == TaskResultStatus.READY
        refresh()
        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 42)
        assert result == task_backends["default"].get_result(result.id)


class TestDummyInTransactions(Ours, test_dummy_backend.DummyBackendTransactionTestCase):
    pass


class TestCustomBackends(Ours, test_custom_backend.CustomBackendTestCase):
    """Our tasks, on the backends of others."""

    left_out: ClassVar[dict[str, str]] = {} if sys.version_info >= (3, 12) else {"test_no_enqueue": PYTHON}


if hasattr(test_custom_backend, "CustomTaskTestCase"):  # since Django 6.1

    class TestCustomTasks(Ours, test_custom_backend.CustomTaskTestCase):
        pass
