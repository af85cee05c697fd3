"""The contract against another backend that keeps tasks in the database: it finds what differs there.

So it can fail. What is listed here is known; a test of the contract that fails beside it, or no more,
fails here.
"""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.test import TransactionTestCase, override_settings
from django_tasks_db.models import DBTaskResult

from alkstore_django.testing.contract import BackendContract
from tests.conformance.contract import assert_fails_in_just
from tests.settings import DB

TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}

SENDER = "task_started, and task_finished after a success, are sent by an instance"
PATH = "a stored path that leads nowhere, or to no task, can be neither run nor read"
DIVERGENCES = {
    "test_the_sender_is_the_class_of_the_backend": SENDER,
    "test_receivers_of_the_class_hear_all": SENDER,
    "test_what_receivers_raise_is_contained": "a receiver's exception is taken for the task's",
    "test_keyboard_interrupt_is_no_failure_of_the_task": "it is recorded as one",
    "test_return_values_are_made_json": "bytes are refused",
    "test_a_return_value_that_json_cannot_hold_is_a_failure": "with another text than Django's",
    "test_a_task_that_is_gone_has_failed_and_the_worker_goes_on": PATH,
    "test_what_is_no_task_is_never_called": PATH,
    "test_results_outlive_their_task": PATH,
    "test_results_outlive_their_queue": "the task of a result is validated again",
}
if DB != "sqlite":
    DIVERGENCES["test_every_character_of_json_arrives"] = "the database judges JSON by other rules"


@override_settings(TASKS=TASKS)
class DjangoTasksDB(BackendContract, TransactionTestCase):
    __test__ = False  # run by the test below

    def run_enqueued(self) -> None:
        options = {"queue_name": "*", "batch": True, "interval": 0, "startup_delay": False, "verbosity": 0}
        call_command("db_worker", **options)

    def _fixture_teardown(self) -> None:
        DBTaskResult.objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_the_contract_finds_what_is_known() -> None:
    assert_fails_in_just(DIVERGENCES, DjangoTasksDB)
