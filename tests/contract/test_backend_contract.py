"""Our backend keeps the contract that we have written down for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.test import TransactionTestCase

from alkstore_django import registry
from alkstore_django.backoff import Backoff
from alkstore_django.tasks import MAX_ATTEMPTS, stored_name
from alkstore_django.testing.contract import BackendContract
from tests.in_process import OwnRows, work


class TestBackendContract(OwnRows, BackendContract, TransactionTestCase):
    attempts = MAX_ATTEMPTS

    def run_enqueued(self) -> None:
        with mock.patch.object(Backoff, "delay", return_value=0):
            work("default", "contract")

    @contextmanager
    def forgotten(self, task: Any, instead: Any = None) -> Iterator[None]:
        with super().forgotten(task, instead), mock.patch.dict(registry._tasks):
            del registry._tasks[stored_name(task)]
            yield
