"""What the enqueue of any backend must do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from alkstore_django.compat import InvalidTask, task_enqueued

from .contract_hooks import READY, Hooks
from .contract_tasks import SAID, give, give_later, say


class EnqueueContract(Hooks):
    def test_enqueue_answers_with_a_result_that_is_ready(self) -> None:
        before = timezone.now()
        result = self.of(give).enqueue(1, two=(3,))
        self.assertEqual(result.status, READY)
        self.assertEqual(result.task, self.of(give))
        self.assertEqual((result.args, result.kwargs), ([1], {"two": [3]}))
        self.assertEqual(result.backend, self.alias)
        self.assertLess(abs(result.enqueued_at - before), timedelta(seconds=60))
        self.assertEqual((result.started_at, result.last_attempted_at, result.finished_at), (None,) * 3)
        self.assertEqual((result.errors, result.worker_ids, result.attempts), ([], [], 0))
        self.assertIs(result.is_finished, False)
        with self.assertRaisesMessage(ValueError, "Task has not finished yet"):
            _ = result.return_value

    def test_ids_are_short_strings_of_their_own(self) -> None:
        ids = [self.of(give).enqueue().id for _ in range(3)]
        self.assertEqual([type(each) for each in ids], [str] * 3)
        self.assertLess(max(map(len, ids)), 64)
        self.assertEqual(len(set(ids)), 3)

    def test_arguments_may_be_a_list_or_a_tuple(self) -> None:
        for args in ([1, 2], (1, 2)):
            self.assertEqual(self.backend.enqueue(self.of(give), args, {}).args, [1, 2])

    def test_arguments_are_json_before_enqueue_returns(self) -> None:
        result = self.of(give).enqueue((1, b"two"), three={"four": (5,)})
        self.assertEqual((result.args, result.kwargs), ([[1, "two"]], {"three": {"four": [5]}}))

    def test_arguments_that_json_cannot_hold_are_refused(self) -> None:
        for value, error in (({1}, TypeError), (object(), TypeError), (datetime.now(), TypeError)):
            with self.subTest(value), self.assertRaises(error):
                self.of(give).enqueue(value)
            with self.subTest(value), self.assertRaises(error):
                self.of(give).enqueue(named=value)
        with self.assertRaises(ValueError):
            self.of(give).enqueue(b"\xff")

    def test_what_is_refused_is_not_run(self) -> None:
        with self.listening() as heard:
            for value in ({1}, object()):
                with self.assertRaises(TypeError):
                    self.of(say).enqueue(value)
            self.run_enqueued()
        self.assertEqual((heard, SAID), ([], []))

    def test_a_task_is_validated_again_when_it_is_enqueued(self) -> None:
        task = self.of(give, queue_name="contract")
        with self.only_the_queue("another"):
            with self.assertRaises(InvalidTask):
                task.enqueue()
            with self.assertRaises(InvalidTask):
                self.backend.enqueue(task, [], {})

    async def test_a_task_is_validated_again_by_aenqueue(self) -> None:
        task = await sync_to_async(self.of)(give, queue_name="contract")
        with self.only_the_queue("another"), self.assertRaises(InvalidTask):
            await task.aenqueue()

    def only_the_queue(self, name: str) -> Any:
        mine = {**settings.TASKS[self.alias], "QUEUES": [name]}
        return override_settings(TASKS={**settings.TASKS, self.alias: mine})

    # -- what it says that it can -----------------------------------------------------------------

    def test_priorities_are_kept_or_refused(self) -> None:
        if not self.backend.supports_priority:
            return self.refuses(give, priority=1)
        for priority in (-100, 100):
            self.assertEqual(self.of(give, priority=priority).enqueue().task.priority, priority)

    def test_higher_priorities_run_first(self) -> None:
        if not self.backend.supports_priority:
            return self.refuses(say, priority=1)
        for priority in (0, 50, -50):
            self.of(say, priority=priority).enqueue(priority)
        self.run_enqueued()
        self.assertEqual(SAID, [50, 0, -50])

    def test_delayed_tasks_wait_or_are_refused(self) -> None:
        moment = timezone.now() + timedelta(hours=1)
        if not self.backend.supports_defer:
            return self.refuses(say, run_after=moment)
        result = self.of(say, run_after=moment).enqueue("later")
        self.of(say).enqueue("now")
        self.run_enqueued()
        self.assertEqual(result.task.run_after, moment)
        self.assertEqual(SAID, ["now"])

    def test_coroutines_are_run_or_refused(self) -> None:
        if not self.backend.supports_async_task:
            return self.refuses(give_later)
        self.assertEqual(self.finished(give_later, "value")["value"], "value")

    # -- awaited ----------------------------------------------------------------------------------

    async def test_aenqueue_is_enqueue(self) -> None:
        task = await sync_to_async(self.of)(say)
        result = await task.aenqueue("awaited")
        self.assertEqual((result.status, result.args, result.task), (READY, ["awaited"], task))
        await sync_to_async(self.run_enqueued)()
        self.assertEqual(SAID, ["awaited"])

    async def test_aenqueue_awaits_receivers(self) -> None:
        heard: list[Any] = []

        async def receive(sender: Any, task_result: Any, **kwargs: Any) -> None:
            heard.append((sender, task_result.id))

        task = await sync_to_async(self.of)(give)
        task_enqueued.connect(receive, weak=False)
        try:
            result = await task.aenqueue()
        finally:
            task_enqueued.disconnect(receive)
        self.assertEqual(heard, [(type(self.backend), result.id)])
