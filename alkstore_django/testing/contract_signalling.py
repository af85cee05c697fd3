"""Who is told what, and when."""

from __future__ import annotations

from typing import Any

from alkstore_django.compat import task_finished, task_started

from .contract_hooks import FAILED, READY, RUNNING, SUCCESSFUL, Heard, Hooks
from .contract_tasks import SAID, Refusal, give, refuse, say


class SignalContract(Hooks):
    def test_each_signal_is_sent_once_and_in_order(self) -> None:
        heard = self.run_task(give)
        self.assertEqual([each.signal for each in heard], ["enqueued", "started", "finished"])
        self.assertEqual(len({each.facts["id"] for each in heard}), 1)

    def test_the_sender_is_the_class_of_the_backend(self) -> None:
        for task, args in ((give, ()), (refuse, ("no",))):
            with self.subTest(task.name):
                senders = [each.sender for each in self.run_task(task, *args)]
                self.assertEqual(senders, [type(self.backend)] * len(senders))

    def test_receivers_of_the_class_hear_all(self) -> None:
        heard: list[Any] = []

        def receive(signal: Any, sender: Any, task_result: Any, **kwargs: Any) -> None:
            heard.append(task_result.status)

        for signal in (task_started, task_finished):
            signal.connect(receive, sender=type(self.backend), weak=False)
        try:
            self.of(give).enqueue()
            self.run_enqueued()
        finally:
            for signal in (task_started, task_finished):
                signal.disconnect(receive, sender=type(self.backend))
        self.assertEqual(len(heard), 2)

    def test_what_the_results_of_signals_say(self) -> None:
        enqueued, started, finished = (each.facts for each in self.run_task(give, 1))
        self.assertEqual((enqueued["status"], enqueued["attempts"]), (READY, 0))
        self.assertIsNotNone(enqueued["enqueued_at"])
        self.assertIsNone(enqueued["started_at"])
        self.assertEqual((started["status"], started["attempts"]), (RUNNING, 1))
        self.assertIsNotNone(started["started_at"])
        self.assertIsNotNone(started["last_attempted_at"])
        self.assertIsNone(started["finished_at"])
        self.assertEqual((finished["status"], finished["value"]), (SUCCESSFUL, 1))
        self.assertIsNotNone(finished["finished_at"])

    def test_each_attempt_has_started_and_one_finishes(self) -> None:
        heard = self.run_task(refuse, "no")
        signals = [each.signal for each in heard]
        self.assertEqual(signals, ["enqueued"] + ["started"] * self.attempts + ["finished"])
        self.assertEqual([each.facts["attempts"] for each in heard[1:-1]], list(range(1, self.attempts + 1)))
        self.assertEqual(heard[-1].facts["status"], FAILED)

    def test_a_failure_is_told_of_while_its_exception_is_handled(self) -> None:
        finished: Heard = self.run_task(refuse, "no")[-1]
        self.assertIsInstance(finished.error, Refusal)
        self.assertIsNone(self.run_task(give)[-1].error)

    def test_what_receivers_raise_is_contained(self) -> None:
        for signal in (task_started, task_finished):
            with self.subTest("started" if signal is task_started else "finished"):
                SAID.clear()
                result = self.of(say).enqueue("it runs")
                signal.connect(quarrel, weak=False)
                try:
                    with self.listening() as heard:
                        self.run_enqueued()
                finally:
                    signal.disconnect(quarrel)
                self.assertEqual(SAID, ["it runs"])
                self.assertEqual([each.signal for each in heard], ["started", "finished"])
                if self.has_results():
                    result.refresh()
                    self.assertEqual(result.status, SUCCESSFUL)


def quarrel(**kwargs: Any) -> None:
    raise Refusal("a receiver that fails")
