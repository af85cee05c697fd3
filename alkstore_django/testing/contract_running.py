"""What becomes of a task that is run, whoever runs it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from alkstore_django.compat import signals

from .contract_hooks import FAILED, RUNNING, SUCCESSFUL, Hooks
from .contract_tasks import (
    SAID,
    Refusal,
    give,
    give_what_json_cannot_hold,
    give_what_json_changes,
    impostor,
    interrupt,
    leave,
    refuse,
    say,
    tell,
    tell_and_refuse,
    vanish,
)


class RunContract(Hooks):
    def test_success(self) -> None:
        found = self.finished(give, {"a": [1, None]})
        self.assertEqual((found["status"], found["errors"]), (SUCCESSFUL, []))
        self.assertEqual(found["value"], {"a": [1, None]})
        self.assertEqual((found["attempts"], len(found["worker_ids"])), (1, 1))
        self.assertLessEqual(found["started_at"], found["last_attempted_at"])
        self.assertLessEqual(found["last_attempted_at"], found["finished_at"] + timedelta(seconds=1))

    def test_every_task_is_run_once(self) -> None:
        for number in range(5):
            self.of(say).enqueue(number)
        self.run_enqueued()
        self.run_enqueued()
        self.assertEqual(sorted(SAID), [0, 1, 2, 3, 4])

    def test_arguments_arrive(self) -> None:
        self.assertEqual(self.finished(give, "é🙂")["value"], "é🙂")
        self.assertEqual(self.finished(give, named=1, value={"a": [1.5]})["value"], {"a": [1.5]})

    def test_every_character_of_json_arrives(self) -> None:
        text = "".join(map(chr, range(32))) + '"\\\x7f\ud800'
        self.assertEqual(self.finished(give, text)["value"], text)

    def test_failure(self) -> None:
        found = self.finished(refuse, "no")
        self.assertEqual(found["status"], FAILED)
        error, traceback = found["errors"][-1]
        self.assertIs(error, Refusal)
        self.assertIn("Refusal: no", traceback)
        self.assertIn("in refuse", traceback)

    def test_a_failed_result_has_no_value(self) -> None:
        result = self.of(refuse).enqueue("no")
        self.run_enqueued()
        if self.has_results():
            result.refresh()
            self.assertIs(result.is_finished, True)
            with self.assertRaisesMessage(ValueError, "Task failed"):
                _ = result.return_value

    def test_each_attempt_counts_and_leaves_its_error(self) -> None:
        found = self.finished(tell_and_refuse)
        n = self.attempts
        self.assertEqual([told["attempt"] for told in SAID], list(range(1, n + 1)))
        self.assertEqual([told["attempts"] for told in SAID], list(range(1, n + 1)))
        self.assertEqual([told["errors"] for told in SAID], list(range(n)))
        self.assertEqual((found["attempts"], len(found["worker_ids"])), (n, n))
        self.assertEqual([error for error, _ in found["errors"]], [Refusal] * n)
        for number, (_, traceback) in enumerate(found["errors"], start=1):
            self.assertIn(f"attempt {number}", traceback)

    def test_started_at_is_that_of_the_first_attempt(self) -> None:
        self.run_task(tell_and_refuse)
        first = SAID[0]["started_at"]
        for told in SAID:  # some keep whole seconds only
            self.assertLess(abs(told["started_at"] - first), timedelta(seconds=1))
            self.assertGreater(told["last_attempted_at"], first - timedelta(seconds=1))
        moments = [told["last_attempted_at"] for told in SAID]
        self.assertEqual(moments, sorted(moments))

    def test_the_context(self) -> None:
        found = self.finished(tell)
        (told,) = SAID
        self.assertEqual(found["value"], found["id"])
        self.assertEqual((told["id"], told["status"], told["attempt"]), (found["id"], RUNNING, 1))
        self.assertIsNone(told["finished_at"])

    # -- return values ----------------------------------------------------------------------------

    def test_return_values_are_made_json(self) -> None:
        found = self.finished(give_what_json_changes)
        self.assertEqual(found["status"], SUCCESSFUL)
        self.assertEqual(found["value_text"], '[1, ["two"], {"three": [4.5, null, true]}]')

    def test_a_return_value_that_json_cannot_hold_is_a_failure(self) -> None:
        found = self.finished(give_what_json_cannot_hold)
        self.assertEqual((found["status"], found["errors"][-1][0]), (FAILED, TypeError))
        self.assertIn("Unsupported type", found["errors"][-1][1])

    # -- exceptions that are not Exception --------------------------------------------------------

    def test_system_exit_is_a_failure_like_any(self) -> None:
        with self.listening() as heard:
            self.of(leave).enqueue("it leaves")
            self.of(say).enqueue("it goes on")
            self.run_enqueued()
        found = next(each.facts for each in heard if each.signal == "finished" and each.facts["errors"])
        self.assertEqual((found["status"], found["errors"][-1][0]), (FAILED, SystemExit))
        self.assertIn("it leaves", found["errors"][-1][1])
        self.assertEqual(SAID, ["it goes on"])

    def test_keyboard_interrupt_is_no_failure_of_the_task(self) -> None:
        with self.listening() as heard, self.assertNoFailureIsLogged(), suppress(KeyboardInterrupt):
            self.of(interrupt).enqueue()
            self.run_enqueued()
        self.assertIn("started", [each.signal for each in heard])
        self.assertNotIn("finished", [each.signal for each in heard])
        if self.has_results():
            found = self.backend.get_result(heard[0].facts["id"])
            self.assertIs(found.is_finished, False)

    def assertNoFailureIsLogged(self) -> Any:  # noqa: N802 - as unittest writes it
        return self.assertNoLogs(signals.__name__.rpartition(".")[0], "ERROR")

    # -- what is not in the code any more ---------------------------------------------------------

    def test_a_task_that_is_gone_has_failed_and_the_worker_goes_on(self) -> None:
        self.leaves_alone(None)

    def test_what_is_no_task_is_never_called(self) -> None:
        self.leaves_alone(impostor)

    def leaves_alone(self, instead: Any) -> None:
        result = self.of(vanish).enqueue()
        self.of(say).enqueue("it goes on")
        with self.forgotten(vanish, instead):
            self.run_enqueued()
            self.assertEqual(SAID, ["it goes on"])
            if self.has_results():
                found = self.backend.get_result(result.id)
                self.assertEqual((found.status, found.id), (FAILED, result.id))
                self.assertGreater(len(found.errors), 0)
        self.run_enqueued()
        self.assertEqual(SAID, ["it goes on"])
