"""The contract against Django's reference backend: what it promises is what that does.

All but what there is no worker for, and no time between an enqueue and a run.
"""

from __future__ import annotations

import pytest
from django.test import TransactionTestCase, override_settings

from alkstore_django.compat import signals
from alkstore_django.testing.contract import BackendContract
from tests.conformance.contract import assert_fails_in_just

FAMILY = signals.__name__.rpartition(".")[0]
TASKS = {"default": {"BACKEND": f"{FAMILY}.backends.immediate.ImmediateBackend", "QUEUES": []}}

AT_ONCE = "the task has run when enqueue returns"
DIFFERENCES = dict.fromkeys(
    (
        "test_enqueue_answers_with_a_result_that_is_ready",
        "test_aenqueue_is_enqueue",
        "test_higher_priorities_run_first",
        "test_what_receivers_raise_is_contained",
        "test_a_task_that_is_gone_has_failed_and_the_worker_goes_on",
        "test_what_is_no_task_is_never_called",
    ),
    AT_ONCE,
)


@override_settings(TASKS=TASKS)
class Immediate(BackendContract, TransactionTestCase):
    __test__ = False  # run by the test below

    def run_enqueued(self) -> None:
        pass

    def _fixture_teardown(self) -> None:
        pass


@pytest.mark.django_db
def test_the_reference_keeps_the_contract() -> None:
    assert_fails_in_just(DIFFERENCES, Immediate)
