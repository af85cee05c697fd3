"""Test cases of a project that run its tasks, for ``manage.py test``; ``test_their_tests.py`` runs them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.test import SimpleTestCase, TestCase, TransactionTestCase

from alkstore_django.models import Job
from alkstore_django.testing import adrain, assert_enqueued, drain, immediate, manual
from tests.app import tasks, told


class InATransaction(TestCase):
    def drains(self) -> None:
        """Nothing is left of the tests before."""
        self.assertFalse(Job.objects.exists() or Group.objects.exists())
        told.make_group.enqueue("one")
        told.later.enqueue(60)
        tasks.async_group.enqueue("two")
        assert_enqueued(told.make_group, args=["one"])
        self.assertEqual([ran.ended for ran in drain()], ["succeeded", "retried", "succeeded"])
        self.assertEqual([ran.ended for ran in drain(until=timedelta(hours=1))], ["retried", "dead"])
        self.assertEqual(Group.objects.count(), 2)

    test_drain_once = test_drain_again = drains

    def test_callbacks(self) -> None:
        told.heard.clear()
        with self.captureOnCommitCallbacks(execute=True):
            told.atomic_group.enqueue("one")
            drain()
            self.assertEqual(told.heard, ["committed one"])
        self.assertEqual(told.heard, ["committed one"])

    async def test_in_a_coroutine(self) -> None:
        await told.make_group.aenqueue("one")
        result = await tasks.async_group.aenqueue("two")
        ran = await adrain()
        self.assertEqual([each.ended for each in ran], ["succeeded", "succeeded"])
        self.assertEqual(await Group.objects.acount(), 2)
        await result.arefresh()
        self.assertEqual(result.status, "SUCCESSFUL")

    @immediate()
    async def test_immediate_in_a_coroutine(self) -> None:
        result = await tasks.async_group.aenqueue("one")
        self.assertEqual(result.status, "SUCCESSFUL")
        outer = await told.aenqueue_another.aenqueue("two")
        self.assertEqual((await told.make_group.aget_result(outer.return_value)).status, "SUCCESSFUL")
        self.assertEqual(await Group.objects.acount(), 2)

    async def test_keyboard_interrupt_in_a_coroutine(self) -> None:
        await told.interrupt_async.aenqueue()
        with self.assertRaises(KeyboardInterrupt):
            await adrain()


@immediate()
class Immediately(TestCase):
    @classmethod
    def setUpTestData(cls) -> None:
        cls.waiting: Any = tasks.add.enqueue(1, 1)

    def test_it_ran(self) -> None:
        self.assertEqual(self.waiting.status, "READY")  # enqueued before the mode began
        self.assertEqual(tasks.add.enqueue(1, 2).return_value, 3)
        self.assertEqual(tasks.async_add.enqueue(1, 2).return_value, 3)
        with manual():
            self.assertEqual(tasks.add.enqueue(1, 2).status, "READY")

    async def test_it_ran_in_a_coroutine(self) -> None:
        self.assertEqual((await tasks.add.aenqueue(1, 2)).return_value, 3)


class WithCommits(TransactionTestCase):
    def drains(self) -> None:
        self.assertFalse(Job.objects.exists() or Group.objects.exists())
        told.heard.clear()
        told.make_group.enqueue("one")
        tasks.async_group.enqueue("two")
        told.atomic_group.enqueue("three")
        told.with_callbacks.enqueue(["heard"])
        self.assertEqual([ran.ended for ran in drain()], ["succeeded"] * 4)
        self.assertEqual(told.heard, ["committed three", "heard"])
        with immediate():
            self.assertEqual(tasks.add.enqueue(1, 2).return_value, 3)
        self.assertEqual(Group.objects.count(), 3)

    test_drain_once = test_drain_again = drains

    async def test_in_a_coroutine(self) -> None:
        await tasks.async_group.aenqueue("one")
        self.assertEqual([each.ended for each in await adrain()], ["succeeded"])


class WithoutADatabase(SimpleTestCase):
    def test_a_mode_costs_no_query(self) -> None:
        with immediate(), manual():
            self.assertEqual(tasks.add.call(1, 2), 3)
