"""Test cases as a project writes them, for ``manage.py test``; ``test_their_tests.py`` runs them."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.db import transaction
from django.test import TestCase, TransactionTestCase

from alkstore_django import queues
from alkstore_django.models import Attempt, DeadJob, Job
from alkstore_django.queues import Queue
from tests.app import tasks

emails = Queue("emails")


class InATransaction(TestCase):
    databases = {"default", "other"}

    @classmethod
    def setUpTestData(cls) -> None:
        cls.known = emails.enqueue("for the class")

    def enqueue(self) -> None:
        """Nothing is left of the tests before, and no query more is needed than in them."""
        self.assertEqual(list(Job.objects.values_list("id", flat=True)), [self.known])
        with self.assertNumQueries(1):
            emails.enqueue("for the test")
        with self.assertNumQueries(1):
            tasks.nothing.enqueue()
        Queue("elsewhere", using="other").enqueue(1)
        self.assertEqual(Job.objects.using("other").count(), 1)
        self.assertEqual(Job.objects.count(), 3)

    test_enqueue_once = test_enqueue_again = enqueue

    def test_a_whole_life(self) -> None:
        job: Any = emails.claim_one("w")
        self.assertEqual(job.id, self.known)
        self.assertTrue(emails.fail(job, "no"))
        self.assertTrue(emails.requeue([job.id]))
        self.assertTrue(queues.cancel(job.id))
        self.assertFalse(Job.objects.exists())

    def test_a_rolled_back_savepoint(self) -> None:
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            emails.enqueue(1)
            raise ZeroDivisionError
        with self.assertRaises(TypeError):
            emails.enqueue(object())
        self.assertEqual(Job.objects.count(), 1)

    def test_on_commit(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            transaction.on_commit(lambda: emails.enqueue("after the commit"))
            self.assertEqual(Job.objects.count(), 1)
        self.assertEqual(Job.objects.count(), 2)


class WithCommits(TransactionTestCase):
    def run_it(self) -> None:
        """The tables are empty each time, and a worker in this process does what it is told to."""
        self.assertFalse(Job.objects.exists() or DeadJob.objects.exists() or Attempt.objects.exists())
        result = tasks.add.enqueue(1, 2)
        doomed = tasks.fail.using(max_attempts=1).enqueue()
        call_command("alkworker", batch=True, verbosity=0)
        result.refresh()
        self.assertEqual(result.return_value, 3)
        self.assertEqual([str(letter.pk) for letter in DeadJob.objects.all()], [doomed.id])

    test_run_it_once = test_run_it_again = run_it


class WithSequencesReset(WithCommits):
    reset_sequences = True

    def test_ids_begin_anew(self) -> None:
        self.assertEqual((emails.enqueue(1), emails.enqueue(2)), (1, 2))

    test_ids_begin_anew_again = test_ids_begin_anew
