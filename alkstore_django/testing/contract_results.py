"""Results, read again by whoever asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from alkstore_django.compat import TaskResultDoesNotExist, TaskResultMismatch

from .contract_hooks import READY, SUCCESSFUL, Hooks, facts
from .contract_tasks import give, give_what_json_changes, refuse, say, vanish

MALFORMED = ("", " ", "x", "123", "0", "-1", "1.5", "1e3", "9" * 100, "x" * 1000, "\x00", "' OR ''='", "é🙂")


class ResultContract(Hooks):
    def test_unknown_and_malformed_ids(self) -> None:
        if self.has_results():
            for result_id in (*MALFORMED, str(uuid4())):
                with self.subTest(result_id), self.assertRaises(TaskResultDoesNotExist):
                    self.backend.get_result(result_id)

    async def test_unknown_and_malformed_ids_awaited(self) -> None:
        if await sync_to_async(self.has_results)():
            for result_id in (*MALFORMED, str(uuid4())):
                with self.subTest(result_id), self.assertRaises(TaskResultDoesNotExist):
                    await self.backend.aget_result(result_id)

    def test_a_result_is_found_again(self) -> None:
        if self.has_results():
            result = self.of(give).enqueue(1, named=2)
            self.assertEqual(self.of(give).get_result(result.id), result)
            self.run_enqueued()
            found = self.of(give).get_result(result.id)
            result.refresh()
            self.assertEqual(found, result)
            self.assertEqual((found.status, found.return_value), (SUCCESSFUL, 1))

    def test_the_same_is_signalled_and_found(self) -> None:
        if self.has_results():
            for task, args in ((give_what_json_changes, ()), (refuse, ("no",))):
                with self.subTest(task.name):
                    signalled = self.finished(task, *args)
                    found = facts(self.backend.get_result(signalled["id"]))
                    for name in ("status", "attempts", "backend", "worker_ids", "errors", "value_text"):
                        self.assertEqual(found[name], signalled[name])

    def test_another_tasks_result_is_a_mismatch(self) -> None:
        if self.has_results():
            result = self.of(give).enqueue()
            with self.assertRaises(TaskResultMismatch):
                self.of(refuse).get_result(result.id)

    def test_the_task_of_a_result_is_the_one_that_was_enqueued(self) -> None:
        if self.has_results():
            changes: dict[str, Any] = {"queue_name": "contract"}
            changes |= {"priority": 7} if self.backend.supports_priority else {}
            moment = timezone.now() + timedelta(hours=1)
            changes |= {"run_after": moment} if self.backend.supports_defer else {}
            task = self.of(give, **changes)
            self.assertEqual(self.backend.get_result(task.enqueue().id).task, task)

    # -- from elsewhere ---------------------------------------------------------------------------

    def test_results_can_be_read_in_another_thread(self) -> None:
        if self.has_results():
            result = self.of(give).enqueue("value")
            self.run_enqueued()
            with ThreadPoolExecutor(1) as pool:
                found = pool.submit(self.result_and_hang_up, result.id).result()
            self.assertEqual((found.status, found.return_value), (SUCCESSFUL, "value"))

    def result_and_hang_up(self, result_id: str) -> Any:
        try:
            return self.backend.get_result(result_id)
        finally:
            connections.close_all()

    def test_results_can_be_read_in_another_process(self) -> None:
        if self.has_results():
            result = self.of(give).enqueue(["value"])
            self.run_enqueued()
            self.assertEqual(self.result_elsewhere(result.id), [result.id, SUCCESSFUL, ["value"], 1])

    async def test_results_can_be_awaited(self) -> None:
        if await sync_to_async(self.has_results)():
            task = await sync_to_async(self.of)(say)
            result = await task.aenqueue("awaited")
            self.assertEqual((await task.aget_result(result.id)).status, READY)
            await sync_to_async(self.run_enqueued)()
            await result.arefresh()
            self.assertEqual(result.status, SUCCESSFUL)

    # -- after a change of the code or the settings -----------------------------------------------

    def test_results_outlive_their_queue(self) -> None:
        if self.has_results():
            result = self.of(give, queue_name="contract").enqueue("kept")
            self.run_enqueued()
            mine = {**settings.TASKS[self.alias], "QUEUES": ["another"]}
            with override_settings(TASKS={**settings.TASKS, self.alias: mine}):
                found = self.backend.get_result(result.id)
                self.assertEqual((found.return_value, found.task.queue_name), ("kept", "contract"))

    def test_results_outlive_their_task(self) -> None:
        if self.has_results():
            result = self.of(vanish).enqueue()
            self.run_enqueued()
            with self.forgotten(vanish):
                found = self.backend.get_result(result.id)
                self.assertEqual((found.status, found.id), (SUCCESSFUL, result.id))
                self.assertEqual(found.task.module_path, vanish.module_path)
